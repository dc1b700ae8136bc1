"""What `import zoo` offers: functions on values that return frozen results with tables and figures."""

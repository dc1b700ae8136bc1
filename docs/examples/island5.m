function mpc = island5
% A small island: two power stations and an interconnector feed two towns over a ring of 110 kV lines.
mpc.version = '2';
mpc.baseMVA = 100;

%	bus_i	type	Pd	Qd	Gs	Bs	area	Vm	Va	baseKV	zone	Vmax	Vmin
mpc.bus = [
	1	3	0	0	0	0	1	1.03	0	110	1	1.1	0.9;
	2	2	20	8	0	0	1	1.02	0	110	1	1.1	0.9;
	3	2	0	0	0	0	1	1.02	0	110	1	1.1	0.9;
	4	1	90	30	0	0	1	1	0	110	1	1.1	0.9;
	5	1	80	25	0	0	1	1	0	110	1	1.1	0.9;
];

%	bus	Pg	Qg	Qmax	Qmin	Vg	mBase	status	Pmax	Pmin	Pc1	Pc2	Qc1min	Qc1max	Qc2min	Qc2max	ramp_agc	ramp_10	ramp_30	ramp_q	apf
mpc.gen = [
	1	60	10	200	-200	1.03	100	1	300	0	0	0	0	0	0	0	0	0	0	0	0;
	2	85	10	200	-200	1.02	100	1	150	0	0	0	0	0	0	0	0	0	0	0	0;
	3	50	10	200	-200	1.02	100	1	100	0	0	0	0	0	0	0	0	0	0	0	0;
];

%	fbus	tbus	r	x	b	rateA	rateB	rateC	ratio	angle	status	angmin	angmax
mpc.branch = [
	1	4	0.010	0.080	0.04	250	250	250	0	0	1	-360	360;
	1	5	0.012	0.100	0.04	250	250	250	0	0	1	-360	360;
	2	4	0.012	0.100	0.04	250	250	250	0	0	1	-360	360;
	2	5	0.015	0.120	0.05	250	250	250	0	0	1	-360	360;
	3	4	0.015	0.120	0.05	250	250	250	0	0	1	-360	360;
	3	5	0.012	0.110	0.04	250	250	250	0	0	1	-360	360;
];

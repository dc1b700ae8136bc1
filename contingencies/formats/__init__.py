"""Network files, each read into the same plain value (`contingencies.formats.case.Case`)."""

"""Group `cost`: what a call costs in processor time, round trips, statements and planning.

Clock times show how long a client waits on a machine that does nothing else. The cost of a call is the processor time
of all processes that it keeps busy, which can be measured beside other work (`processes.py`). Each figure is compared
with the SDK's bare echo, which is measured in turns with it: the ratios are valid for other machines, too.
"""

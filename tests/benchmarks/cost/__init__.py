"""Group `cost`: what a call costs in processor time, round trips, statements and planning.

Times of a clock tell how long somebody waits on a machine that does nothing else. What a call costs is the processor
time of every process that it keeps busy, which can be measured beside other work (`processes.py`). Each figure stands
beside the SDK's bare echo, which is measured in turns with it: ratios carry over to other machines.
"""

"""Recordings: streams that were written down, checked and put in order to be looked at again.

A recording is read whole or, if it is large, as a sample by key (`key_sample`) that a first reading
calls for (`survey`): from anything that can be read twice (`reading`) or from Spark DataFrames
(`spark_reading`). `given_tables` checks what the offline optimum and sizing both are given.
"""

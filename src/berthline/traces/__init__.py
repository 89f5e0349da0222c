"""Traces and generators: everything that makes a Workload.

    load.py               load_trace: a file in, a Workload out
    formats.py            the table of formats; a new format is one file and one entry there
    swf.py                Standard Workload Format
    detection.py          how sure a format can be of a file
    files.py              reading bytes, gzip or not, with errors a user can act on
    blank_separated.py    columns of a text whose fields are separated by blanks
    synthetic.py          generate, and the table of generators
    dials.py              the named, range-checked settings of a generator
    offered_load.py       how loaded a cluster is by a workload, and how to change it
    workload_argument.py  the command line's WORKLOAD: a file or a generator

A reader never drops a row silently: what it left out, and why, is in `Workload.provenance`.
"""

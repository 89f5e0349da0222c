"""Traces and generators: everything that makes a Workload.

    load.py               load_trace: a file in, a Workload out
    formats.py            the table of formats; a new format is one file and one entry there
    swf.py                Standard Workload Format
    alibaba_*.py          Alibaba traces: pai (2020), openb (2023), dlrm (2025), spot (2026)
    google_2011*.py       Google clusterdata-2011-2
    rltune.py, tiresias.py, muri.py, pollux_sia.py, gavel*.py   lists of other simulators
    plain_csv.py          any CSV; column_mapping.py: which of its columns means what
    parquet.py            Berthline's own files, read and written bit for bit
    write_swf.py          a workload as SWF; anonymize.py, split.py: before it leaves the house
    node_lists.py         read_cluster: a publisher's list of nodes as a cluster
    detection.py          how sure a format can be of a file
    files.py              reading bytes, gzip or not, with errors a user can act on
    blank_separated.py    columns of a text whose fields are separated by blanks
    csv_table.py          columns of a text table; csv_reader.py: reading it in pieces, by
                          csv_native.py what is plain, by csv_careful.py and csv_look.py the rest;
                          csv_columns.py: what columns become; csv_lines.py: numbers of lines
    shown.py              what a file says, as a message shows it
    text_columns.py       columns of text as codes and names, labels, counts
    json_rows.py          records of a JSON list
    usable.py             why a row is left out; dates.py, pools.py: what many formats share
    synthetic.py          generate and episodes, and the table of generators
    generator.py          what a generator is; episodes.py: many short workloads at once
    arrivals.py           when jobs come; run_times.py, gpu_mix.py, estimates.py, job_columns.py:
                          what they are like; lublin.py, reference_systems.py: whole generators
    common_workload.py    what `synthetic` makes, bit for bit
    quantile_table.py     quantiles that are looked up, where computing each costs too much
    draws.py              random numbers that depend on seed, column, episode and job alone
    dials.py              the named, range-checked settings of a generator
    fit.py                a generator with the habits of a trace; fit_arrivals.py, fit_levels.py,
                          fit_requests.py: what is learned; fitted.py, fitted_arrivals.py,
                          fitted_draws.py: what is drawn; closeness.py, wait_check.py: how close
    offered_load.py       how loaded a cluster is by a workload, and how to change it
    card.py               what a workload is made of; demand.py, arrival_pattern.py, impossible.py
    validate.py           what is wrong in a file; oddities.py: what looks odd in a workload
    catalog.py            public traces; fetch.py gets them from their publishers
    workload_argument.py  the command line's WORKLOAD: a file or a generator

A reader never drops a row silently: what it left out, and why, is in `Workload.provenance`.
"""

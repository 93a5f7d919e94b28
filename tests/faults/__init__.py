"""The faults that the program promises to survive, each with the test that shows it, and the peers beside it.

table.py       number, fault, expected, tests: what `make faults` runs and prints
__main__.py    runs all of them in one pytest run, prints fault, expected, seen, time; `--write` updates the docs
packages.py    the peers and libfaketime, unpacked from Debian's packages and PyPI into `.cache`, never installed
shippers.py    the exporter and its peers, each with its best configuration for this job
receiver.py    one receiver for all of them: the floor of our wire, and Elasticsearch's `_bulk`
lab.py         sessions, a shipper and a receiver; counts what is lost and what came twice
clock.py       programs whose clock libfaketime moves or speeds up
"""

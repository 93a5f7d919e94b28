"""Delivery in a world of its own: the real pipeline, with a simulated clock, disk, network and receivers.

clock      an event loop in which time passes only when nothing is left to do
disk       session files and databases in memory
receiver   receivers with every capability, and at the floor
redactor   a redactor that masks one word
network    what goes wrong on the way, and what must hold of every request
exporters  one process of the exporter, which can be killed
world      the steps of a schedule, and what must hold
schedules  a schedule from a seed; runs it, and finds the smallest part that fails
planted    known defects, each of which has to be found

`python -m tests.simulation --schedules N --seed S` plays N schedules from seed S on.
"""

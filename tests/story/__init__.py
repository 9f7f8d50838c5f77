"""The whole story on one machine: training pushes, inference flows out and comes home.

`make story`, or `python -m tests.story --help`.
"""

"""The flags of the scripts beside this one."""
import argparse


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100000)
    parser.add_argument("--step-ms", type=float, default=20)
    parser.add_argument("--skip-rank", type=int, default=-1)
    parser.add_argument("--skip-at", type=int, default=-1)
    return parser.parse_args()

"""Train on a graph from an edge list and samples from a CSV file, with the walk that `diagnose` recommends.

Writes pipes.csv, flows.csv, flows.npz (the record) and flows.html (a page) into the current folder. Prints
the graph, the problem, the verdict of the diagnosis, the recommended design and step, and the error of the
model beside the best possible one.
"""

import csv
from itertools import pairwise

import numpy as np

import freewalk as fw
from freewalk.report import Page, section_of, write_page
from freewalk.specs import read_samples

# Two files as you may have them: pipes between pumping stations, and a few measurements from each station.
stations = ["north", "mill", "bridge", "harbour", "market", "school", "tower", "south"]
pipes = [*pairwise(stations), ("south", "north"), ("mill", "tower")]
with open("pipes.csv", "w", newline="") as file:
    csv.writer(file).writerows([("from", "to"), *pipes])

random = np.random.default_rng(4)
with open("flows.csv", "w", newline="") as file:
    rows = csv.writer(file)
    rows.writerow(["station", "pressure", "height", "flow"])
    for station in stations:
        for pressure, height in random.normal(size=(5, 2)) * (6 if station == "mill" else 1):
            rows.writerow([station, pressure, height, 2 * pressure - height + random.normal(scale=0.3)])

# From here on it is the same for your files.
graph = fw.graphs.read("pipes.csv")
features, targets, nodes = read_samples("flows.csv", target="flow", node="station")
problem = fw.objectives.LeastSquares(features, targets, nodes, graph=graph)
print(graph)
print(problem)

found = fw.diagnose(graph, problem)
step = found.forecasts[found.best_label].race.step
print(str(found).splitlines()[0])
print(f"recommended: {found.best}, step {step:.2g}")

kernel = found.best.kernel(graph, problem.smoothness, label="recommended")
record = fw.learn(problem, kernel, fw.SGD(step), steps=2000, walks=50, every=100, seed=1)
record.save("flows.npz")
write_page(Page("Flows", [section_of(record)]), "flows.html")
print(f"model: {record.data.final.mean('walk').values.round(2)}")
print(f"error: {float(record.data.mse[:, -1].mean()):.3f}, best possible: {record.data.attrs['optimal_mse']:.3f}")

"""Let a PyTorch module walk over nodes that hold different handwritten digits.

Needs `pip install ".[torch,data]"`. Writes digits.safetensors, the weights of the first walk, into the
current folder. Prints how the digits are spread, the accuracy on unseen digits during the walk, and some
predictions of the saved model.
"""

import torch

import freewalk as fw
from freewalk.torch import TorchObjective

torch.set_num_threads(1)  # for so small a model, one thread is faster than several
torch.manual_seed(0)

train, test = fw.data.digits().split(test=0.2, seed=0)
graph = fw.graphs.watts_strogatz(20, 4, 0.1, seed=3)
partition = fw.data.Dirichlet(alpha=0.3).partition(train, n=graph.n, seed=1)
print(partition)

net = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
objective = TorchObjective(net, "cross_entropy", train.by_node(partition), test=test, batch=10)
kernel = fw.designs.Metropolis(power=0).kernel(graph)
record = fw.learn(objective, kernel, fw.SGD(step=0.1), steps=400, walks=2, every=100, seed=7)
for step, accuracy in zip(record.data.step.values, record.data.accuracy.mean("walk").values, strict=True):
    print(f"accuracy after {step:3d} updates: {accuracy:.2f}")

model = record.data.final[0].values
objective.save_model(model, "digits.safetensors")
trained = objective.module_with(model)
images = torch.tensor(test.features[:8], dtype=torch.float32)
print("predicted:", trained(images).argmax(dim=1).tolist())
print("true:     ", test.targets[:8].tolist())

"""Data-parallel training of a small network on real handwritten digits (the 1,797 of scikit-learn's package).

Every rank holds the whole network and a share of each batch; the gradients are summed over the ring, so that all
ranks take the same step. Rank 0 prints the learning curve.
"""
import argparse
import gzip
import importlib.util
import os
import pathlib
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402  (after the threads are set)

from ring import Ring  # noqa: E402

TEST_EXAMPLES = 360


def load_digits():
    package = pathlib.Path(importlib.util.find_spec("sklearn").origin).parent
    with gzip.open(package / "datasets" / "data" / "digits.csv.gz", "rt") as file:
        table = np.loadtxt(file, delimiter=",", dtype=np.float32)
    table = table[np.random.default_rng(0).permutation(len(table))]
    images, labels = table[:, :64] / 16, table[:, 64].astype(int)
    return images[TEST_EXAMPLES:], labels[TEST_EXAMPLES:], images[:TEST_EXAMPLES], labels[:TEST_EXAMPLES]


def shifted(images, random):
    """Each image moved by up to one pixel, so that no epoch sees the same twice."""
    padded = np.pad(images.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    down, right = random.integers(0, 3, (2, len(images)))
    rows = down[:, None, None] + np.arange(8)[None, :, None]
    columns = right[:, None, None] + np.arange(8)[None, None, :]
    return padded[np.arange(len(images))[:, None, None], rows, columns].reshape(-1, 64)


class Network:
    """64 pixels → two hidden layers → 10 digits; all weights are views of one vector, so that one sum does."""

    def __init__(self, hidden):
        sizes = [64, hidden, hidden, 10]
        shapes = [shape for a, b in zip(sizes, sizes[1:]) for shape in ((a, b), (b,))]
        self.weights = np.zeros(sum(int(np.prod(shape)) for shape in shapes), np.float32)
        self.gradient = np.zeros_like(self.weights)
        self.velocity = np.zeros_like(self.weights)
        self._w, self._g = self._views(self.weights, shapes), self._views(self.gradient, shapes)
        random = np.random.default_rng(1)
        for matrix in self._w[::2]:
            matrix[:] = random.normal(0, np.sqrt(2 / matrix.shape[0]), matrix.shape)

    @staticmethod
    def _views(vector, shapes):
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        return [part.reshape(shape) for part, shape in zip(np.split(vector, ends[:-1]), shapes)]

    def forward(self, images):
        layers = [images]
        for depth in range(0, 6, 2):
            values = layers[-1] @ self._w[depth] + self._w[depth + 1]
            layers.append(np.maximum(values, 0) if depth < 4 else values)
        return layers

    def backward(self, images, labels):
        """Leaves the summed gradient of the examples in self.gradient; returns their summed loss."""
        layers = self.forward(images)
        exponents = np.exp(layers[3] - layers[3].max(axis=1, keepdims=True))
        chances = exponents / exponents.sum(axis=1, keepdims=True)
        loss = -np.log(chances[np.arange(len(labels)), labels] + 1e-9).sum()
        error = chances
        error[np.arange(len(labels)), labels] -= 1
        for depth in (4, 2, 0):
            self._g[depth][:] = layers[depth // 2].T @ error
            self._g[depth + 1][:] = error.sum(axis=0)
            if depth:
                error = (error @ self._w[depth].T) * (layers[depth // 2] > 0)
        return float(loss)

    def step(self, rate):
        self.velocity *= 0.9
        self.velocity -= rate * self.gradient
        self.weights += self.velocity

    def accuracy(self, images, labels):
        return float((self.forward(images)[3].argmax(axis=1) == labels).mean())


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--epochs", type=int, default=50)
    options.add_argument("--batch", type=int, default=64, help="over all ranks")
    options.add_argument("--hidden", type=int, default=1024)
    options.add_argument("--rate", type=float, default=0.01)
    options = options.parse_args()

    ring = Ring()
    images, labels, test_images, test_labels = load_digits()
    network = Network(options.hidden)
    random = np.random.default_rng(2)  # the same on every rank: all agree on the order of examples
    attempt = os.environ.get("MUSTER_ATTEMPT", "-")
    print(f"rank {ring.rank} of {ring.size}, attempt {attempt}: "
          f"{len(images)} examples, {len(network.weights)} weights", flush=True)
    began = time.monotonic()
    for epoch in range(1, options.epochs + 1):
        order, moved = random.permutation(len(images)), shifted(images, random)
        total_loss = np.zeros(1, np.float32)
        for first in range(0, len(order), options.batch):
            batch = order[first:first + options.batch]
            mine = batch[ring.rank::ring.size]
            total_loss += network.backward(moved[mine], labels[mine])
            ring.all_reduce(network.gradient)
            network.gradient /= len(batch)
            network.step(options.rate)
        ring.all_reduce(total_loss)
        if ring.rank == 0:
            loss, accuracy = total_loss[0] / len(images), network.accuracy(test_images, test_labels)
            print(f"epoch {epoch:2d}/{options.epochs}  loss {loss:.4f}  test accuracy {accuracy:.3f}  "
                  f"{'#' * round(40 * accuracy)}", flush=True)
    if ring.rank == 0:
        print(f"final test accuracy {network.accuracy(test_images, test_labels):.3f} "
              f"after {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()

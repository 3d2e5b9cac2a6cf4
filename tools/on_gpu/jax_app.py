# SPDX-License-Identifier: Apache-2.0
"""A JAX program for `sonde run`: a compiled training step."""
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
# Autotuning times candidates: how many runs that takes is chance.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_gpu_autotune_level=0"
import jax
import jax.numpy as jnp


@jax.jit
def step(w, x, y):
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2))(w)
    return w - 0.1 * gradient, loss


key = jax.random.PRNGKey(0)
w = jax.random.normal(key, (256, 64))
x = jax.random.normal(key, (128, 256))
y = jnp.ones((128, 64))
for _ in range(20):
    w, loss = step(w, x, y)
print(float(loss))

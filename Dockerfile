# syntax=docker/dockerfile:1@sha256:87999aa3d42bdc6bea60565083ee17e86d1f3339802f543c0d03998580f9cb89
# Roomtone as a service: the bot with the embedded recogniser and voice. docs/operations.md has the commands.
#
#   docker build -t roomtone .                        for the CPU
#   docker build -t roomtone:cuda --target cuda .     the recogniser on an NVIDIA GPU
#   docker build -t roomtone:cluster --target cluster .   with Ray, for several machines
#
# The root filesystem may be read-only (`--read-only --tmpfs /tmp`): the bot writes into /app/data alone.
#
# Dependabot renews the digests (.github/dependabot.yml).
FROM python:3.11.16-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b AS python

FROM python AS build
ENV UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_PROJECT_ENVIRONMENT=/app/.venv UV_PYTHON_DOWNLOADS=never
RUN pip install --no-cache-dir 'uv==0.13.8'
WORKDIR /app
COPY pyproject.toml uv.lock LICENSE ./
RUN --mount=type=cache,target=/root/.cache/uv uv sync --frozen --no-dev --all-extras --no-extra cluster --no-install-project
COPY benchmarks benchmarks
COPY bot bot
COPY compaction compaction
COPY config config
COPY rehearsal rehearsal
COPY voice voice
RUN --mount=type=cache,target=/root/.cache/uv uv sync --frozen --no-dev --all-extras --no-extra cluster --no-editable

FROM build AS build-cuda
RUN --mount=type=cache,target=/root/.cache/uv uv sync --frozen --no-dev --group cuda --all-extras --no-extra cluster --no-editable

FROM build AS build-cluster
RUN --mount=type=cache,target=/root/.cache/uv uv sync --frozen --no-dev --all-extras --no-editable

# The image without Roomtone's libraries. uv and its cache stay behind in the stages above.
FROM python AS runtime
RUN useradd --create-home --uid 10001 roomtone && install -d -o roomtone -g roomtone -m 0700 /app/data
WORKDIR /app
# SQLITE_TMPDIR: writing the database anew, after somebody is forgotten, makes a whole copy of it there, and another in the
# journal. /tmp is in memory.
ENV PATH=/app/.venv/bin:$PATH SQLITE_TMPDIR=/app/data PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 \
    ROOMTONE_STORAGE__DATA_DIR=/app/data ROOMTONE_MODELS__DIRECTORY=/app/data/models \
    ROOMTONE_WEB__HOST=0.0.0.0 ROOMTONE_WEB__PORT=8095
VOLUME /app/data
# Inside the container's own network. Publish it for this machine alone, or for a reverse proxy.
EXPOSE 8095
# Red means that a restart helps, and that the bot ends by itself soon, because an engine restarts only what has ended.
# /readyz says more, and is red for reasons that a restart does not mend.
# The first start downloads the models.
HEALTHCHECK --interval=30s --timeout=5s --start-period=15m --retries=3 CMD ["python", "-c", \
    "import os, urllib.request as u; u.urlopen(f\"http://127.0.0.1:{os.environ['ROOMTONE_WEB__PORT']}/healthz\", timeout=4)"]
# The bot lets a spoken sentence end and stores everything: give it 60 seconds (`docker stop --time 60`).
STOPSIGNAL SIGTERM
ENTRYPOINT ["/bin/sh", "-c", "case $1 in run) roomtone models pull || exit ;; esac; exec roomtone \"$@\"", "roomtone"]
CMD ["run"]

FROM runtime AS cuda
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
COPY --from=build-cuda --chown=root:root /app/.venv /app/.venv
# The driver comes from the host; the libraries of CUDA are in the environment, where the recogniser does not look.
RUN find /app/.venv -type d -path '*/nvidia/*/lib' > /etc/ld.so.conf.d/cuda.conf && ldconfig
USER 10001:10001

# Recognisers on a Ray cluster, and bots that ask them (deploy/kuberay.yaml).
FROM runtime AS cluster
COPY --from=build-cluster --chown=root:root /app/.venv /app/.venv
USER 10001:10001

FROM runtime AS cpu
COPY --from=build --chown=root:root /app/.venv /app/.venv
USER 10001:10001

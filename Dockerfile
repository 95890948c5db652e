# Roomtone as a service: the bot, the embedded recogniser and the embedded voice, on CPU.
#
#   docker build -t roomtone .
#   docker run --env-file .env -v roomtone-data:/app/data roomtone
#
# Models are fetched into the volume at the first start, and each file is checked against its SHA-256.
#
# To fix the base image, pass the digest that you have checked:
#   docker build --build-arg PYTHON_IMAGE=python:3.11-slim-bookworm@sha256:… -t roomtone .
# None is written here, because none could be checked when this was written.
ARG PYTHON_IMAGE=python:3.11-slim-bookworm
FROM ${PYTHON_IMAGE} AS build
ENV UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_PROJECT_ENVIRONMENT=/app/.venv
RUN pip install --no-cache-dir 'uv==0.13.8'
WORKDIR /app
COPY pyproject.toml uv.lock README.md LICENSE ./
RUN uv sync --frozen --no-dev --all-extras --no-install-project
COPY benchmarks benchmarks
COPY bot bot
COPY compaction compaction
COPY config config
COPY rehearsal rehearsal
COPY voice voice
RUN uv sync --frozen --no-dev --all-extras --no-editable

FROM ${PYTHON_IMAGE}
RUN useradd --create-home --uid 10001 roomtone && install -d -o roomtone -m 0700 /app/data
WORKDIR /app
COPY --from=build --chown=root:root /app/.venv /app/.venv
ENV PATH=/app/.venv/bin:$PATH PYTHONUNBUFFERED=1 \
    ROOMTONE_STORAGE__DATA_DIR=/app/data ROOMTONE_MODELS__DIRECTORY=/app/data/models
USER roomtone
VOLUME /app/data
# SIGTERM ends sessions with their closing segment; give it more than Docker's ten seconds when you stop it.
STOPSIGNAL SIGTERM
ENTRYPOINT ["/bin/sh", "-c", "roomtone models pull && exec roomtone \"$@\"", "--"]
CMD ["run"]

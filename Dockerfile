# syntax=docker/dockerfile:1
ARG PYTHON=python:3.13-slim-bookworm

# hadolint ignore=DL3006
FROM ${PYTHON} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/build && python -m venv /opt/vk-provider
WORKDIR /src
COPY requirements/build.lock requirements/run.lock requirements/
RUN /opt/build/bin/pip install --require-hashes -r requirements/build.lock \
 && /opt/vk-provider/bin/pip install --require-hashes -r requirements/run.lock
COPY . .
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /dist . \
 && /opt/vk-provider/bin/pip install --no-deps /dist/*.whl \
 && /opt/vk-provider/bin/pip uninstall --yes pip

# hadolint ignore=DL3006
FROM ${PYTHON}
COPY --from=build /opt/vk-provider /opt/vk-provider
# Nothing is written outside mounted volumes, so a read-only root file system works.
ENV PATH=/opt/vk-provider/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["vk-provider"]

#!/bin/bash
# setup.sh : kafka-python from its source archive, which holds its integration tests
set -eu
room=$OTTLA_CACHE/kafka-python-$KAFKA_PYTHON
[ -f "$room/complete" ] && exit 0
rm -rf "$room"; mkdir -p "$room"; cd "$room"
python3 -m venv python
pip="python/bin/pip -q --disable-pip-version-check"
$pip download --no-deps --no-binary kafka-python -d . "kafka-python==$KAFKA_PYTHON"
tar xzf "kafka_python-$KAFKA_PYTHON.tar.gz"; mv "kafka_python-$KAFKA_PYTHON" source
$pip install ./source "pytest==$PYTEST" "pytest-mock==$PYTEST_MOCK" "pytest-timeout==$PYTEST_TIMEOUT" "lz4==$PYTHON_LZ4" \
  "zstandard==$PYTHON_ZSTANDARD" "crc32c==$PYTHON_CRC32C" "python-snappy==$PYTHON_SNAPPY"
touch "$room/complete"

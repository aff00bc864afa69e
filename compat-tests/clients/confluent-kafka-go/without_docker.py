"""without_docker.py FILE : takes the part that starts brokers in Docker out of the integration tests, and with it the
need of some 190 modules."""

import re
import sys

path = sys.argv[1]
with open(path) as file:
    text = file.read()
text = text.replace('\t"github.com/testcontainers/testcontainers-go/modules/compose"\n', "")
text = text.replace("\tcompose *compose.LocalDockerCompose\n", "")
text = re.sub(r"\tif testconf.DockerNeeded && its.compose != nil \{\n.*?\n\t\}\n", "", text, flags=re.S)
text = re.sub(r"\tif testconf.DockerNeeded && !testconf.DockerExists \{\n.*?\n\t\}\n(?=\tsuite.Run)", "", text, flags=re.S)
with open(path, "w") as file:
    file.write(text)

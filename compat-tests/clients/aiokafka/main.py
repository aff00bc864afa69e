"""main.py HOST:PORT : runs all checks, prints a line for each."""

import groups
import kit
import records
import restarts
import topics
import transactions

kit.run(topics.CHECKS + records.CHECKS + groups.CHECKS + transactions.CHECKS + restarts.CHECKS)

package delivery

import (
	"slipway.dev/slipway/inventory"
)

// SecretRefused is the issue that somebody asked for a host's secrets who may not have them.
func SecretRefused(id inventory.HostID, cause, hint string) inventory.Issue {
	return inventory.Issue{
		Key: inventory.IssueSecretRefused + "/" + string(id), Type: inventory.IssueSecretRefused,
		Severity: inventory.SeverityError, HostIDs: []inventory.HostID{id}, Cause: cause, Hint: hint,
	}
}

package delivery

import (
	"slipway.dev/slipway/inventory"
)

// SecretRefused is the issue that Slipway refused a request for a host's secrets.
func SecretRefused(id inventory.HostID, cause, hint string) inventory.Issue {
	return inventory.Issue{
		Key: inventory.IssueSecretRefused + "/" + string(id), Type: inventory.IssueSecretRefused,
		Severity: inventory.SeverityError, HostIDs: []inventory.HostID{id}, Cause: cause, Hint: hint,
	}
}

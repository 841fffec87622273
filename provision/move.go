package provision

import (
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// refusal is the issue that a host cannot be given its boot.
func refusal(id inventory.HostID, subnet string, d pxe.Decision) inventory.Issue {
	return inventory.Issue{
		Key: inventory.IssueBootRefused + "/" + string(id), Type: inventory.IssueBootRefused,
		Severity: inventory.SeverityError, HostIDs: []inventory.HostID{id}, Subnet: subnet, Cause: d.Reason, Hint: d.Hint,
	}
}

// loop is the issue that a host booted too often without arriving.
func loop(id inventory.HostID, cause, hint string) inventory.Issue {
	return inventory.Issue{
		Key: inventory.IssueBootLoop + "/" + string(id), Type: inventory.IssueBootLoop,
		Severity: inventory.SeverityError, HostIDs: []inventory.HostID{id}, Cause: cause, Hint: hint,
	}
}

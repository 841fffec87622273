package trouble

import (
	"fmt"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// instanceIssues are the issues that other instances of the database give no sign of life.
func instanceIssues(h *Health) (all []inventory.Issue) {
	for _, s := range h.Silent {
		cause := fmt.Sprintf("instance %s gives no sign of life since %s", s.Name, s.SeenAt.UTC().Format(time.RFC3339))
		for _, t := range s.TakenBy {
			cause += fmt.Sprintf("; instance %s took its duty %s", t.By, t.Duty)
		}
		if len(s.Holds) > 0 {
			cause += "; nobody has taken over " + strings.Join(s.Holds, ", ")
		}
		all = append(all, inventory.Issue{
			Key: inventory.IssueInstance + "/" + s.Name, Type: inventory.IssueInstance, Severity: inventory.SeverityWarning,
			Cause: inventory.Clean(cause, CauseAtMost),
			Hint: "look at its machine, and whether it reaches the database; this closes when it is back. If it is gone for good: " +
				"slipway instance delete " + s.Name,
		})
	}
	return all
}

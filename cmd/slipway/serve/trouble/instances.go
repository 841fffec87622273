package trouble

import (
	"fmt"
	"strings"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve/files"
	"slipway.dev/slipway/inventory"
)

// instanceIssues are the issues that other instances of the database give no sign of life, or get no answer from the leader.
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
	for _, c := range h.CutOff {
		cause := fmt.Sprintf("instance %s gets no answer from the instance with the engine since %s: %s", c.Name,
			c.SinceAt.UTC().Format(time.RFC3339), c.Reason)
		if len(c.Answers) > 0 {
			cause += "; machines of " + strings.Join(c.Answers, ", ") + " wait: no other instance there reaches it"
		}
		all = append(all, inventory.Issue{
			Key: inventory.IssueCutOff + "/" + c.Name, Type: inventory.IssueCutOff, Severity: inventory.SeverityError,
			Cause: inventory.Clean(cause, CauseAtMost),
			Hint: "open port 8069 between the two machines; slipway instance show lists the links of an instance. " +
				"An instance that reaches the engine, and has an address in the same networks, answers there within seconds",
		})
	}
	return all
}

// aloneIssues is the issue that images would be lost with the machine of this instance.
func aloneIssues(a files.Alone) []inventory.Issue {
	if len(a.Images) == 0 {
		return nil
	}
	cause := "only this instance has files of the images " + strings.Join(a.Images, ", ")
	if len(a.Images) == 1 {
		cause = "only this instance has files of the image " + a.Images[0]
	}
	if a.Reason != "" {
		cause += ": " + strings.ReplaceAll(a.Reason, "\n", "; ")
	}
	return []inventory.Issue{{
		Key: inventory.IssueOneCopy, Type: inventory.IssueOneCopy, Severity: inventory.SeverityWarning,
		Cause: inventory.Clean(cause, CauseAtMost),
		Hint:  "the other instances fetch them by themselves; their logs say what is in the way, such as a full disk",
	}}
}

package records

import (
	"fmt"
	"regexp"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

var auditHead = regexp.MustCompile(`^[0-9a-f]{64}$`)

type auditVerify struct {
	Noted string `help:"Head that an earlier run printed: it must still be in the chain." placeholder:"HASH"`
}

// Run looks at the chain of the audit. A broken one is an error.
func (c *auditVerify) Run(s *cli.Session, api *client.Client) error {
	if c.Noted != "" && !auditHead.MatchString(c.Noted) {
		return cli.Usage("give the head that an earlier check printed, 64 hex digits: slipway audit verify", "--noted %q is not the head of an audit", c.Noted)
	}
	a, err := api.AuditChain(s.Ctx, c.Noted)
	if err != nil {
		return err
	}
	if err := s.Show(a, func(t *cli.TableWriter) {
		t.Field("entries", fmt.Sprint(a.EntryN))
		if a.UnhashedN > 0 {
			t.Field("of versions without hashes", fmt.Sprint(a.UnhashedN))
		}
		t.Field("newest", fmt.Sprint(a.HeadID))
		t.Field("head", a.Head)
	}); err != nil {
		return err
	}
	if !a.IsWhole {
		return inventory.Errorf(inventory.Conflict, "the audit is not as it was written: %s", a.Reason).
			WithHint("compare with an export or a backup: slipway audit show %d", max(a.BrokenID, 1))
	}
	s.Say("no entry was changed or taken out; note the head elsewhere, and give it next time with --noted")
	return nil
}

type auditExport struct {
	After int64 `help:"Only entries after this id." placeholder:"ID"`
}

// Run writes entries as JSON lines.
func (c *auditExport) Run(s *cli.Session, api *client.Client) error {
	for after := c.After; ; {
		page, err := api.AuditExport(s.Ctx, after)
		if err != nil {
			return err
		}
		for i := range page.Items {
			if err := cli.WriteJSON(s.Out, page.Items[i], false); err != nil {
				return err
			}
			after = page.Items[i].ID
		}
		if page.Next == "" {
			return nil
		}
	}
}

package boot

import (
	"context"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/recorder"
)

// Issues opens and ends the issues that belong to no single boot.
type Issues struct{ Frame }

// Exhausted opens the issue that a subnet has no address left; Refilled is its end.
func (i *Issues) Exhausted(subnet string) {
	// By the recorder, because the DHCP server must not wait for the disk when it has no address to give.
	i.Recorder.Take(recorder.Note{Do: func(tx inventory.Tx) error {
		return i.Ledger.OpenIssue(tx, inventory.Issue{
			Key: inventory.IssuePoolExhausted + "/" + subnet, Type: inventory.IssuePoolExhausted,
			Severity: inventory.SeverityError, Subnet: subnet, Cause: "subnet " + subnet + " has no free address left",
			Hint: "add a range with: slipway range add " + subnet + " FIRST-LAST",
		})
	}})
}

// exhaustedFor is how long a subnet is called full after the last machine that got no address; while it is full, that is
// told every 10 s.
const exhaustedFor = time.Minute

// areGone reports whether all of some hosts were deleted.
func areGone(tx inventory.Tx, ids []inventory.HostID) (bool, error) {
	// One host that is still there keeps the issue open.
	for _, id := range ids {
		if _, err := tx.FindHost(id); !inventory.IsKind(err, inventory.NotFound) {
			return false, err
		}
	}
	return true, nil
}

// EndIssues closes the issues of subnets that have room again, or that nobody asks any more, and of hosts that were deleted.
func (i *Issues) EndIssues(ctx context.Context) error { return i.Store.Write(ctx, i.end) }

func (i *Issues) end(tx inventory.Tx) error {
	open, err := tx.ListIssues(false, "")
	if err != nil {
		return err
	}
	for _, o := range open {
		why := ""
		switch {
		case o.Type == inventory.IssuePoolExhausted:
			// The DHCP server repeats it every 10 seconds while machines get no address.
			if i.Now().Sub(o.SeenAt) >= exhaustedFor {
				why = "no machine has been left without an address for " + exhaustedFor.String()
			}
		case o.Type == inventory.IssueSessionRefused && i.Now().Sub(o.SeenAt) >= delivery.StrangerForgotten:
			why = "nobody else has used the URLs of its boots for " + delivery.StrangerForgotten.String()
		case len(o.HostIDs) == 1 || len(o.HostIDs) > 0 && strings.Contains(o.Key, ledger.OfStrangersKey):
			isGone, err := areGone(tx, o.HostIDs)
			if err != nil {
				return err
			}
			if isGone {
				why = "its host was deleted"
			}
		}
		if why == "" {
			continue
		}
		if err := i.Ledger.CloseIssue(tx, o, why); err != nil {
			return err
		}
	}
	return nil
}

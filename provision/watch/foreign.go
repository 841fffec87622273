package watch

import (
	"fmt"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/pxe"
)

// Foreign notes another DHCP server. On a network of our own it is an issue: an error after its own packet, a warning when
// only a machine named it.
func (in *Intruders) Foreign(f pxe.ForeignServer) {
	// By the recorder, because the capture of packets must not wait for a transaction.
	in.cfg.Recorder.Take(recorder.Note{Do: func(tx inventory.Tx) error {
		n, err := tx.Subnets().Find(f.Subnet)
		if err != nil {
			return ledger.IgnoreNotFound(err)
		}
		// In the modes proxy and off another server gives the addresses, as the admin wants it.
		if n.Mode != inventory.ModeFull {
			return nil // it is expected there
		}
		return in.cfg.Ledger.OpenIssue(tx, foreignIssue(f, in.cfg.Vendor(f.MAC)))
	}})
}

// foreignIssue is the issue about another server; vendor made its network card, "" when not known.
func foreignIssue(f pxe.ForeignServer, vendor string) inventory.Issue {
	who := string(f.MAC)
	if vendor != "" && f.MAC != "" {
		who += ", " + vendor
	}
	i := inventory.Issue{
		Key:  foreignKey(f),
		Type: inventory.IssueForeignDHCP, Severity: inventory.SeverityError, Subnet: f.Subnet,
		Cause: fmt.Sprintf("DHCP server %s (%s) answers on %s, where subnet %s is in mode full", f.Server, who, f.Interface, f.Subnet),
		Hint:  fmt.Sprintf("find %s and switch it off, or let it give the addresses: slipway subnet update %s --mode proxy", f.MAC, f.Subnet),
	}
	switch {
	case f.DUID != "" && f.IsHeard:
		i.Cause = fmt.Sprintf("DHCPv6 server %s (%s) answers on %s, where subnet %s is in mode full", f.Server, f.Name(), f.Interface, f.Subnet)
		i.Hint = fmt.Sprintf("switch it off, or let it give the addresses: slipway subnet update %s --mode off; see where it leads machines: slipway subnet probe %s", f.Subnet, f.Subnet)
	case f.DUID != "":
		i.Severity = inventory.SeverityWarning
		i.Cause = fmt.Sprintf("a machine on %s took the answer of another DHCPv6 server, %s, which we have not heard ourselves", f.Interface, f.Name())
		i.Hint = fmt.Sprintf("ask for it: slipway subnet probe %s", f.Subnet)
	case !f.IsHeard:
		i.Severity = inventory.SeverityWarning
		i.Cause = fmt.Sprintf("a machine on %s took an offer of DHCP server %s, which we have not heard ourselves", f.Interface, f.Server)
		i.Hint = fmt.Sprintf("ask for it: slipway subnet probe %s", f.Subnet)
	case f.IsProxy:
		i.Cause = fmt.Sprintf("ProxyDHCP server %s (%s) names boot files on %s, where subnet %s is in mode full: machines may boot from it", f.Server, who, f.Interface, f.Subnet)
		i.Hint = fmt.Sprintf("find %s and switch its network boot off", f.MAC)
	}
	return i
}

func foreignKey(f pxe.ForeignServer) string {
	return inventory.IssueForeignDHCP + "/" + f.Interface + "/" + f.Name()
}

// ForeignGone closes the issues of servers without a sign in the last hour, after listening for that long, on some subnets. It also
// closes those on subnets that are no longer ours alone.
func (in *Intruders) ForeignGone(noticed []pxe.ForeignServer, subnets []string, listened time.Duration) {
	in.cfg.Recorder.Take(recorder.Note{Do: func(tx inventory.Tx) error {
		open, err := tx.ListIssues(false, "")
		if err != nil {
			return err
		}
		for _, i := range open {
			if i.Type != inventory.IssueForeignDHCP {
				continue
			}
			n, err := tx.Subnets().Find(i.Subnet)
			if err != nil && !inventory.IsKind(err, inventory.NotFound) {
				return err
			}
			isThere := err == nil
			if isThere && !slices.Contains(subnets, i.Subnet) {
				continue // another instance listens there
			}
			why := "it has not been noticed for an hour"
			isNoticed := slices.ContainsFunc(noticed, func(f pxe.ForeignServer) bool { return foreignKey(f) == i.Key })
			// Nothing is concluded from silence before it has lasted an hour: after a restart the list of servers is empty.
			if isNoticed || listened < pxe.ForeignForgotten {
				if isThere && n.Mode == inventory.ModeFull {
					continue
				}
				why = "the network is no longer in mode full"
			}
			if err := in.cfg.Ledger.CloseIssue(tx, i, why); err != nil {
				return err
			}
		}
		return nil
	}})
}

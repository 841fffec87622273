package claim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"slipway.dev/slipway/hardware/placement"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
)

// refsOf returns what the reason of a choice may name: the pools and the host of the machine's placement, what the reason of that host
// names, and the hosts that are examples.
func refsOf(tx inventory.Tx, m *inventory.Machine, choice *placement.Choice) (refs []inventory.Ref) {
	refs = append(slices.Clone(m.Refs), inventory.PoolRef(m.Pool))
	for _, name := range slices.Concat(m.Placement.NotPools, m.Placement.OnlyPools) {
		refs = append(refs, inventory.PoolRef(name))
	}
	if h, err := tx.FindHostByName(m.Placement.Host); err == nil {
		refs = append(refs, inventory.HostRef(h.Name))
		refs = append(refs, inventory.OfMachine(h.Machine, h.Refs...)...)
		if op, err := tx.FindOpenOperation(h.ID); err == nil {
			refs = append(refs, op.Refs...)
		}
	}
	for _, r := range choice.Rejected {
		refs = append(refs, inventory.HostRef(r.Example))
	}
	return refs
}

// whyNot says why there is no host for a machine. Placement knows the hosts that are free; here are the others.
func whyNot(tx inventory.Tx, m *inventory.Machine, choice placement.Choice) (reason, hint string, err error) {
	if o := &choice.Outlook; o.IsHopeless {
		return o.Reason, o.Hint, nil
	}
	if m.Placement.Host != "" {
		h, err := tx.FindHostByName(m.Placement.Host)
		if err != nil {
			return choice.Reason, choice.Hint, ledger.IgnoreNotFound(err)
		}
		if h.State != inventory.Available {
			reason = fmt.Sprintf("host %s is %s", h.Name, h.State)
			if h.Machine != "" {
				reason += " for machine " + h.Machine
			}
			return ledger.Because(reason, h.StateReason), "slipway host show " + h.Name, nil
		}
		for _, f := range []struct {
			is         bool
			what, hint string
		}{
			{h.InMaintenance, "is in maintenance", "slipway host maintain " + h.Name + " --off"},
			{h.IsProtected, "is protected", "slipway host protect " + h.Name + " --off"},
		} {
			if f.is {
				return "host " + h.Name + " " + f.what, f.hint, nil
			}
		}
		if op, err := tx.FindOpenOperation(h.ID); err == nil {
			return fmt.Sprintf("host %s is busy: %s", h.Name, operation.Describe(&op)), "slipway operation show " + op.ID, nil
		}
		return choice.Reason, choice.Hint, nil
	}
	var all, others []string // placement has counted some of the available ones; the rest is busy, protected or in maintenance
	for _, s := range inventory.States() {
		n, err := tx.CountHosts(inventory.HostFilter{State: s})
		if err != nil {
			return "", "", fmt.Errorf("count hosts: %w", err)
		}
		if n == 0 {
			continue
		}
		all = append(all, fmt.Sprintf("%d %s", n, s))
		if s != inventory.Available {
			others = append(others, all[len(all)-1])
		}
	}
	if len(others) == 0 {
		return choice.Reason, choice.Hint, nil
	}
	if choice.Code == placement.InsufficientResources && len(choice.Rejected) == 0 { // placement has seen none at all
		return "no host is free: " + strings.Join(others, ", "), "slipway host list", nil
	}
	reason = choice.Reason + "; the inventory has " + strings.Join(all, ", ")
	if n := choice.Outlook.Fit; n > 0 {
		reason += fmt.Sprintf("; of all hosts %d would do", n)
	}
	return reason, cmp.Or(choice.Hint, "slipway host list"), nil
}

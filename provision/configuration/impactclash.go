package configuration

import (
	"net/netip"
	"strings"
	"sync"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/address"
)

// addClashes adds to trials what they would hold that somebody or something else has, with each other and with all that the
// edit does not touch. Machines of the edit that wait for a host are tried, too; those that clash are added to what is shown.
func (c *Edits) addClashes(t edit, tx inventory.Tx, trials []*trial) (shown, all []*trial, err error) {
	t.Tx = tx
	b, err := c.book(t, true)
	if err != nil {
		return nil, nil, err
	}
	waiting, err := c.waiting(t, b)
	if err != nil {
		return nil, nil, err
	}
	all = append(trials[:len(trials):len(trials)], waiting...)
	var held []inventory.Holding
	except := map[string]bool{}
	for _, j := range all {
		except[j.subject.Key()] = true
		held = append(held, j.holdings...)
	}
	among := map[string][]address.Clash{}
	for _, clash := range address.Among(held) {
		among[clash.Key()] = append(among[clash.Key()], clash)
	}
	for _, j := range all {
		fresh, err := newOnly(tx, j.subject, j.holdings)
		if err != nil {
			return nil, nil, err
		}
		no, err := b.TooMany(j.subject, j.holdings, fresh)
		if err != nil {
			return nil, nil, err
		}
		if no != nil {
			j.impact.Findings = append(j.impact.Findings, tooMany(no)...)
			continue
		}
		clashes, err := b.Clashes(j.subject, j.holdings, except)
		if err != nil {
			return nil, nil, err
		}
		for _, clash := range append(clashes, among[j.subject.Key()]...) {
			isNew := false
			for _, h := range fresh {
				isNew = isNew || h.IsSame(&clash.Holding)
			}
			j.impact.Findings = append(j.impact.Findings, clashFindings([]address.Clash{clash}, isNew)...)
		}
	}
	for _, j := range waiting {
		if len(j.impact.Findings) > 0 {
			trials = append(trials, j)
		}
	}
	return trials, all, nil
}

// waiting are the machines of an edit that have no host yet.
func (c *Edits) waiting(t edit, b *address.Book) (all []*trial, err error) {
	machines, err := t.ListMachines(inventory.MachineFilter{}, inventory.Page{})
	if err != nil {
		return nil, err
	}
	for i := range machines {
		m := &machines[i]
		if m.HostID != "" {
			continue
		}
		x, err := c.holds(t, b, m, nil)
		if err != nil {
			return nil, err
		}
		if x.in == nil || !t.isUsedBy(x.in) {
			continue
		}
		j := &trial{subject: x.Subject, holdings: x.all, impact: HostImpact{Host: "machine " + m.Name}}
		if err := saidError(x.err); err != nil {
			j.impact.Findings.Errorf("", "address", "machine %s: %s", inventory.MachineRef(m.Name), err.Msg).Says(err)
		}
		all = append(all, j)
	}
	return all, nil
}

// clashFindings says clashes as findings: errors when they are new, warnings when they were there before.
func clashFindings(clashes []address.Clash, isNew bool) (r machineconfig.Report) {
	for _, c := range clashes {
		say := r.Warnf
		if isNew {
			say = r.Errorf
		}
		f := say(c.Path, c.Code(), "%s: %s", c.Holder, c.Message())
		f.Hint, f.Source, f.Refs = c.Hint, c.Source, c.References()
	}
	return r
}

// clashesOf says as findings that a subject would have too many addresses, or else what others have.
func clashesOf(b *address.Book, s address.Subject, all []inventory.Holding) (machineconfig.Report, error) {
	if no, err := b.TooMany(s, all, all); no != nil || err != nil {
		return tooMany(no), err
	}
	clashes, err := b.Clashes(s, all, nil)
	return clashFindings(clashes, true), err
}

// tooMany says as a finding that there are too many addresses.
func tooMany(no *inventory.Error) (r machineconfig.Report) {
	if no != nil {
		r.Errorf("/network", "too-many-addresses", "%s", no.Msg).Says(no)
	}
	return r
}

// constantAddresses warns of addresses that a layer gives to all its hosts.
func constantAddresses(c *machineconfig.Config) (r machineconfig.Report) {
	for _, a := range c.StaticAddresses() {
		isShared := false
		for _, wide := range []string{"layer global", "layer site/", "layer rack/", "profile "} {
			isShared = isShared || strings.HasPrefix(a.Source, wide)
		}
		if isShared && strings.HasPrefix(a.Path, "/network/") {
			f := r.Warnf(a.Path, "constant-address", "every machine of this layer gets %s: only one may have it", a.Address)
			f.Source, f.Hint = a.Source, "write fromSubnets: [SUBNET] for an address of each machine's own, or the address in the layer of the host or machine"
		}
	}
	return r
}

func lockedAddresses(of machineconfig.AddressOf, locked *sync.Mutex) machineconfig.AddressOf {
	return func(subnet string) (netip.Prefix, error) {
		locked.Lock()
		defer locked.Unlock()
		return of(subnet)
	}
}

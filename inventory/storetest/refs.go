package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ref"
)

// nameRE matches what can be a name, a MAC or an id.
var nameRE = regexp.MustCompile(`[A-Za-z0-9][A-Za-z0-9._:-]*`)

// CheckRefs fails a test for each text of an event, issue, host, machine, operation, boot or controller in which a word names a
// host, machine or pool that is neither what the row is about nor among its references. It compares all words with the inventory.
func CheckRefs(t testing.TB, s inventory.Store) {
	t.Helper()
	var missing []string
	err := s.Read(context.Background(), func(tx inventory.Tx) (err error) {
		missing, err = Unreferenced(tx)
		return err
	})
	if err != nil && !inventory.IsKind(err, inventory.Unavailable) { // the test has closed the store
		t.Error(err)
	}
	for _, m := range missing {
		t.Error(m)
	}
}

// Unreferenced lists the words that CheckRefs looks for, each with its text.
func Unreferenced(tx inventory.Tx) (all []string, err error) {
	n, err := namesIn(tx)
	if err != nil {
		return nil, err
	}
	events, err := tx.ListEvents(inventory.EventFilter{}, 0, 0)
	if err != nil {
		return nil, err
	}
	for i := range events {
		e := &events[i]
		if n.hosts[e.HostID] == nil && !isShared(e) {
			continue
		}
		data, _ := json.Marshal(e.Data)
		own := append(n.ofHost(e.HostID), string(e.MAC))
		all = append(all, n.missing("event "+e.Kind, own, e.References(), e.Detail, string(data))...)
	}
	issues, err := tx.ListIssues(true, "")
	if err != nil {
		return nil, err
	}
	for _, i := range issues {
		if len(i.HostIDs) == 0 {
			continue
		}
		var own []string
		for _, id := range i.HostIDs { // an issue is shown only to readers that see all of its hosts
			own = append(own, n.ofHost(id)...)
		}
		all = append(all, n.missing("issue "+i.Type, own, i.Refs, i.Cause, i.Hint)...)
	}
	reasons, err := n.reasons(tx)
	return append(all, reasons...), err
}

// reasons lists the words without references in the reasons of hosts and what is done with them, and of machines.
func (n *named) reasons(tx inventory.Tx) (all []string, err error) {
	hosts, err := tx.ListHosts(inventory.HostFilter{}, inventory.Page{})
	if err != nil {
		return nil, err
	}
	for i := range hosts {
		h := &hosts[i]
		own := n.ofHost(h.ID)
		all = append(all, n.missing("host "+h.Name, own, h.Refs, h.StateReason)...)
		if b, err := tx.FindBMC(h.ID); err == nil {
			all = append(all, n.missing("controller of "+h.Name, own, b.Refs, b.Reason)...)
		}
	}
	machines, err := tx.ListMachines(inventory.MachineFilter{}, inventory.Page{})
	if err != nil {
		return nil, err
	}
	for i := range machines {
		m := &machines[i]
		all = append(all, n.missing("machine "+m.Name, []string{m.Name, m.Pool}, m.Refs, m.Reason, m.Hint)...)
	}
	operations, err := tx.ListOperations(inventory.OperationFilter{}, inventory.Page{})
	if err != nil {
		return nil, err
	}
	for i := range operations {
		o := &operations[i]
		all = append(all, n.missing("operation "+string(o.Kind), n.ofHost(o.HostID), o.Refs, o.Reason, o.Hint)...)
	}
	sessions, err := tx.ListSessions("", inventory.Page{})
	if err != nil {
		return nil, err
	}
	for _, b := range sessions {
		if b.HostID != "" {
			all = append(all, n.missing("boot", n.ofHost(b.HostID), b.Refs, b.Reason)...)
		}
	}
	return all, nil
}

// named are the names of an inventory, each with what it names.
type named struct {
	what  map[string]string
	hosts map[inventory.HostID][]string
}

func namesIn(tx inventory.Tx) (n named, err error) {
	n = named{what: map[string]string{}, hosts: map[inventory.HostID][]string{}}
	hosts, err := tx.ListHosts(inventory.HostFilter{}, inventory.Page{})
	if err != nil {
		return n, err
	}
	for _, h := range hosts {
		own := []string{h.Name, string(h.ID)}
		for _, mac := range h.MACs() {
			own = append(own, string(mac))
		}
		for _, name := range own {
			n.what[name] = "host " + h.Name
		}
		n.hosts[h.ID] = own
	}
	machines, err := tx.ListMachines(inventory.MachineFilter{}, inventory.Page{})
	if err != nil {
		return n, err
	}
	for _, m := range machines {
		n.what[m.Name] = "machine " + m.Name
	}
	pools, err := tx.Pools().List(inventory.Page{})
	for _, p := range pools {
		if p.Name != inventory.DefaultPool {
			n.what[p.Name] = "pool " + p.Name
		}
	}
	return n, err
}

// isShared reports whether readers with roles in pools may see an event that is about no host.
func isShared(e *inventory.Event) bool {
	noun, _, _ := strings.Cut(e.Subject, "/")
	return e.HostID == "" && slices.Contains([]string{"machine", "pool", "profile", "image", "golden", "artefact"}, noun)
}

func (n *named) ofHost(id inventory.HostID) []string { return slices.Clone(n.hosts[id]) }

func (n *named) missing(where string, own []string, refs []inventory.Ref, texts ...string) (all []string) {
	for _, text := range texts {
		for _, word := range nameRE.FindAllString(text, -1) {
			word = strings.TrimRight(word, ".:-_")
			isRef := slices.ContainsFunc(refs, func(r inventory.Ref) bool {
				isSame := r.Name == word || n.what[word] != "" && n.what[r.Name] == n.what[word] // a host by its id refers to its name, too
				return isSame || r.Kind == ref.Unknown
			})
			isWord := !strings.ContainsAny(word, "-0123456789") // a test may call a host by a word that sentences have
			if what := n.what[word]; what != "" && !isWord && !isRef && !slices.Contains(own, word) {
				all = append(all, fmt.Sprintf("%s names %s and has no reference to it: %s", where, what, text))
			}
		}
	}
	return all
}

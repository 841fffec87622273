package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/web/client"
)

func isNotFound(err error) bool {
	var e *inventory.Error
	return errors.As(err, &e) && e.Kind == inventory.NotFound
}

// await asks until something is so, and fails with what was missing when the time is over.
func (k *rack) await(ctx context.Context, what string, isSo func(context.Context) (missing string, err error)) {
	k.t.Helper()
	last := ""
	for ctx.Err() == nil {
		missing, err := isSo(ctx)
		if err == nil && missing == "" {
			return
		}
		if err == nil {
			last = missing
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	k.t.Errorf("never: %s; %s", what, last)
}

// areUp says which machines neither run nor have failed with a reason.
func (k *rack) areUp(ctx context.Context) (missing string, err error) {
	var left []string
	n := 0
	for m, err := range k.api.Machines.All(ctx, client.Query{Limit: 500}) {
		if err != nil {
			return "", err
		}
		n++
		if m.Phase != inventory.MachineRunning && (m.Phase != inventory.MachineFailed || m.Reason == "") {
			left = append(left, fmt.Sprintf("%s is %s (%s)", m.Name, m.Phase, m.Reason))
		}
	}
	if n != len(k.names) {
		left = append(left, fmt.Sprintf("there are %d machines of %d", n, len(k.names)))
	}
	return strings.Join(left[:min(len(left), 8)], "; "), nil
}

// areGone says which machines are still there, and which hosts are not at rest.
func (k *rack) areGone(ctx context.Context) (missing string, err error) {
	var left []string
	for m, err := range k.api.Machines.All(ctx, client.Query{Limit: 500}) {
		if err != nil {
			return "", err
		}
		left = append(left, fmt.Sprintf("%s is %s (%s)", m.Name, m.Phase, m.Reason))
	}
	for h, err := range k.api.Hosts.All(ctx, client.Query{Limit: 500}) {
		if err != nil {
			return "", err
		}
		isAtRest := h.State == inventory.Available || h.State == inventory.Discovered || h.State == inventory.Failed && h.StateReason != ""
		if !isAtRest || h.ClaimID != "" {
			left = append(left, fmt.Sprintf("%s is %s (%s) claimed by %q", h.Name, h.State, h.StateReason, h.Machine))
		}
	}
	return strings.Join(left[:min(len(left), 8)], "; "), nil
}

// check compares what machines lived through with what is on disk, while no server runs.
func (k *rack) check() {
	k.t.Helper()
	store, err := sqlstore.Open(k.t.Context(), k.store)
	if err != nil {
		k.t.Fatal(err)
	}
	defer store.Close()
	ops, hosts := map[string]inventory.Operation{}, map[inventory.HostID]inventory.Host{}
	err = store.Read(k.t.Context(), func(tx inventory.Tx) error {
		all, err := tx.ListOperations(inventory.OperationFilter{}, inventory.Page{})
		if err != nil {
			return err
		}
		for _, o := range all {
			ops[o.ID] = o
			if !o.IsOpen() {
				continue
			}
			events, err := tx.ListEvents(inventory.EventFilter{HostID: o.HostID}, 0, 1000)
			if err != nil {
				return err
			}
			for _, e := range events {
				k.t.Logf("%s %s %s %s", o.HostID, e.At.Format(time.TimeOnly), e.Kind, e.Detail)
			}
		}
		rows, err := tx.ListHosts(inventory.HostFilter{}, inventory.Page{})
		for _, h := range rows {
			hosts[h.ID] = h
		}
		return err
	})
	if err != nil {
		k.t.Fatal(err)
	}
	if len(hosts) != k.hosts {
		k.t.Errorf("%d hosts of %d are left", len(hosts), k.hosts)
	}
	k.checkOperations(ops, hosts)
	writes, wipes := k.checkActs(ops, hosts)
	k.t.Logf("%d writes and %d wipes in %d operations", writes, wipes, len(ops))
	if writes < len(k.names)*9/10 {
		k.t.Errorf("only %d writes for %d machines", writes, len(k.names))
	}
}

// checkOperations looks for what is under way without an end, and for claims that were installed twice.
func (k *rack) checkOperations(ops map[string]inventory.Operation, hosts map[inventory.HostID]inventory.Host) {
	installed := map[inventory.ClaimID]inventory.Operation{}
	for _, o := range ops {
		h := hosts[o.HostID]
		if o.IsOpen() {
			k.t.Errorf("host %s: %s is still %s at %s: %s", h.Name, o.Kind, o.State, o.Step, o.Reason)
		}
		if o.State == inventory.OpFailed && o.Reason == "" {
			k.t.Errorf("host %s: %s failed without a reason", h.Name, o.Kind)
		}
		if o.Kind != inventory.OpInstall || o.ClaimID == "" {
			continue
		}
		if other, ok := installed[o.ClaimID]; ok {
			k.t.Errorf("claim %s was installed twice: on %s and on %s", o.ClaimID, hosts[other.HostID].Name, h.Name)
		}
		installed[o.ClaimID] = o
	}
}

// checkActs looks at each thing that destroyed data on a machine.
func (k *rack) checkActs(ops map[string]inventory.Operation, hosts map[inventory.HostID]inventory.Host) (writes, wipes int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for mac, acts := range k.acts {
		up := map[inventory.ClaimID]bool{}
		for _, a := range acts {
			id, _, _ := strings.Cut(a.Task, ".")
			op, ok := ops[id]
			h := hosts[op.HostID]
			switch {
			case !ok:
				k.t.Errorf("%s did %s for operation %s, which is not on disk", mac, a.What, id)
				continue
			case !slices.Contains(h.MACs(), inventory.MAC(mac)):
				k.t.Errorf("%s did %s for operation %s, which is %s's", mac, a.What, id, h.Name)
			}
			switch a.What {
			case "up":
				up[op.ClaimID] = true
				continue
			case "write":
				writes++
				if op.ClaimID == "" || up[op.ClaimID] {
					k.t.Errorf("%s was written again after it was up, or for no claim: %s for %q", h.Name, op.Kind, op.ClaimID)
				}
			case "wipe":
				wipes++
				if op.Kind != inventory.OpRelease {
					k.t.Errorf("%s was wiped by an operation %s", h.Name, op.Kind)
				}
			default:
				continue
			}
			if k.own[mac] {
				k.t.Errorf("%s, protected or not accepted, was told to %s", h.Name, a.What)
			}
			if !op.EndedAt.IsZero() && a.At.After(op.EndedAt.Add(time.Second)) {
				k.t.Errorf("%s was told to %s %s after its operation had ended", h.Name, a.What, a.At.Sub(op.EndedAt))
			}
		}
	}
	return writes, wipes
}

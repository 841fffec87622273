package delivery

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/render"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/ledger"
)

// AgainFor is how long the machine itself may fetch a document with secrets again: tools retry, and read in stages. It is a
// rule of level L1 of docs/secrets.md, as a Guard keeps it.
const AgainFor = 2 * time.Minute

// Guard decides whether a machine may have documents with secrets, and counts how often it fetches them.
type Guard struct {
	*ledger.Ledger // with the store and the time
	// Neighbour returns the MAC that uses an address on our own network, where the kernel knows one; nil knows none.
	Neighbour    func(netip.Addr) (inventory.MAC, bool)
	Confidential *Confidential // nil: secrets are sent over HTTP, too
}

// authorise refuses documents with secrets that are, by now, not for the configuration that names them or for the host. It
// keeps the names of what the documents hold.
func authorise(tx inventory.Tx, d *delivery) error {
	uses := d.rendering.Uses
	// The rights are read now, and not when the boot began: an admin may have taken a secret away since then.
	may := configuration.MayUse(tx, &d.host)
	for _, doc := range d.docs {
		if !doc.IsSecret {
			continue
		}
		refs := late.References([]byte(doc.Text))
		// A reference without a known origin cannot be checked against anybody's rights. So it is refused.
		for _, ref := range render.Untraced(refs, uses) {
			isOwn, err := hasOwnData(tx, d, ref)
			if err != nil {
				return err
			}
			if !isOwn {
				return inventory.Errorf(inventory.Forbidden, "it is not known which part of the configuration names %s", inventory.Clean(ref, 80)).
					WithHint("boot the machine again: its configuration is then made again")
			}
		}
		for _, ref := range refs {
			if late.IsSecret(ref) {
				d.secrets = append(d.secrets, shownRef(ref))
			}
			for _, u := range uses {
				if !isOf(u, ref) {
					continue
				}
				if err := may(u); err != nil {
					return err
				}
			}
		}
	}
	slices.Sort(d.secrets)
	d.secrets = slices.Compact(d.secrets)
	return nil
}

// isOf reports whether a use stands for a reference of a document.
func isOf(u inventory.Use, ref string) bool {
	if name := inventory.SecretOf(ref); name != "" {
		return u.Secret() == name
	}
	name := inventory.TargetOf(ref)
	return name != "" && inventory.TargetOf(u.Ref) == name
}

// shownRef names a secret or join target in words: no node's name, no part of a document.
func shownRef(ref string) string {
	if name := inventory.SecretOf(ref); name != "" {
		return name
	}
	return "token of " + inventory.TargetOf(ref)
}

// hasOwnData reports whether a reference stands for the bootstrap data of the host's own machine.
func hasOwnData(tx inventory.Tx, d *delivery, ref string) (bool, error) {
	if inventory.SecretOf(ref) != bootstrapSecret || d.host.Machine == "" {
		return false, nil
	}
	m, err := tx.FindMachine(d.host.Machine)
	if err != nil {
		return false, fmt.Errorf("read machine of %s: %w", d.host.Name, err)
	}
	return m.BootstrapFrom != "", nil
}

// noteDelivery writes into the audit which secrets a machine is given. The first fetch of a document by a boot counts; what
// the machine fetches again at once is the same delivery.
func (g *Guard) noteDelivery(tx inventory.Tx, d *delivery) error {
	// A document without secrets leaves no row: the audit answers who got which secret.
	if len(d.secrets) == 0 {
		return nil
	}
	return tx.AddAudit(&inventory.Audit{
		At: g.Now(), Actor: "host " + d.host.Name, Via: "boot", Source: d.Source.String(), Operation: "deliver-secrets",
		Noun: "host", Name: d.host.Name, HostID: d.host.ID, Status: 200,
		Detail: inventory.Clean("given "+strings.Join(d.secrets, ", ")+" in "+d.Name+" of boot "+string(d.session.ID), 500),
	})
}

// allowed asks all that stands between a machine and documents with secrets. A refusal is not the transaction's error: what
// was noted with it stays.
func (g *Guard) allowed(ctx context.Context, d *delivery) error {
	if g.Neighbour != nil { // before the transaction, which others wait for
		d.neighbour, _ = g.Neighbour(d.Source)
	}
	var refusal error
	// authorise adds to these names, so they begin empty.
	err := g.Store.Write(ctx, func(tx inventory.Tx) (err error) {
		d.secrets = nil
		if refusal = authorise(tx, d); refusal != nil {
			return nil
		}
		refusal, err = g.guard(tx, d)
		return err
	})
	if err != nil {
		return err
	}
	return refusal
}

// listed names the documents that the machine would be given now. Looking through the list gives nothing out, and burns
// nothing.
func (g *Guard) listed(ctx context.Context, d *delivery) (names []string) {
	if g.Neighbour != nil {
		d.neighbour, _ = g.Neighbour(d.Source)
	}
	for _, doc := range d.rendering.Documents {
		// A copy for each document, because guard and authorise write into it.
		one := *d
		one.Name, one.docs, one.IsPeek = doc.Name, []inventory.RenderedDocument{doc}, true
		if doc.IsSecret && !g.Confidential.stages(&one) {
			err := g.Store.Read(ctx, func(tx inventory.Tx) error {
				if err := authorise(tx, &one); err != nil {
					return err
				}
				refusal, err := g.guard(tx, &one)
				return errors.Join(refusal, err)
			})
			if err != nil {
				continue
			}
		}
		names = append(names, doc.Name)
	}
	return names
}

// guard counts the delivery of documents with secrets, before anything is sent, and refuses what is not the machine
// itself asking for the first time or again at once.
func (g *Guard) guard(tx inventory.Tx, d *delivery) (refusal, err error) {
	if g.Confidential != nil && !d.IsTLS {
		return inventory.Errorf(inventory.Forbidden, "this site sends secrets over TLS only").WithHint("boot the machine again: its script knows the way"), nil
	}
	if !d.isolated && d.session.Proof == inventory.ProofNone {
		return inventory.Errorf(inventory.Forbidden, "nothing shows that this boot is one of %s", d.host.Name).
			WithHint("when it is: slipway host confirm %s", d.host.Name), nil
	}
	now := g.Now()
	// The address is judged before the count. A request from elsewhere must not use up what is due to the machine.
	var stranger error
	if !d.isolated {
		stranger = g.stranger(tx, d)
	}
	isNew := false
	for _, doc := range d.docs {
		if !doc.IsSecret {
			continue
		}
		given, err := tx.FindDelivery(d.session.ID, doc.Name)
		isFirst := inventory.IsKind(err, inventory.NotFound)
		if err != nil && !isFirst {
			return nil, fmt.Errorf("read delivery of %s: %w", doc.Name, err)
		}
		switch {
		// An isolated profile has no guard: its machine may fetch again at any time.
		case d.isolated && !isFirst:
		case given.IsBurnt:
			return inventory.Errorf(inventory.Forbidden, "%s was asked for by somebody else; it is given out no more", doc.Name).
				WithHint("look at issue secret-refused of %s, then boot the machine again", d.host.Name), nil
		case stranger != nil && isFirst:
			return stranger, nil
		// Somebody else asked after the machine had the document. It is burnt, so that the other one cannot win by asking again.
		case stranger != nil:
			given.IsBurnt = true
			if err := tx.SaveDelivery(given); err != nil {
				return nil, fmt.Errorf("store delivery of %s: %w", doc.Name, err)
			}
			return stranger, nil
		case isFirst:
			isNew = true
			given = inventory.Delivery{SessionID: d.session.ID, Document: doc.Name, Source: d.Source, FirstAt: now}
		case now.Sub(given.FirstAt) > AgainFor:
			return inventory.Errorf(inventory.Forbidden, "%s was given out %s ago; it is given out once", doc.Name, inventory.Duration(now.Sub(given.FirstAt).Round(time.Second))).
				WithHint("boot the machine again for another one"), nil
		}
		if d.IsPeek { // it learns the length, and is given nothing
			continue
		}
		given.FetchN++
		given.LastAt = now
		if err := tx.SaveDelivery(given); err != nil {
			return nil, fmt.Errorf("store delivery of %s: %w", doc.Name, err)
		}
	}
	// Only the first fetch is an entry of the audit. The tool's own retries would fill it with the same line.
	if d.IsPeek || !isNew {
		return nil, nil
	}
	return nil, g.noteDelivery(tx, d)
}

// stranger says why a request for secrets cannot come from the host: our DHCP gave the address to no port of it, or
// the network says that another machine has it.
func (g *Guard) stranger(tx inventory.Tx, d *delivery) error {
	refuse := func(format string, args ...any) error {
		return inventory.Errorf(inventory.Forbidden, format, args...).WithHint("only %s itself may fetch its secrets, from the address that our DHCP gave it", d.host.Name)
	}
	if d.isOwn { // nobody else vouches for that address
		if !slices.Contains(d.host.MACs(), d.neighbour) {
			return inventory.Errorf(inventory.Forbidden, "%s is an address of the configuration, and the network does not say that %s uses it", d.Source, d.host.Name).
				WithHint("reserve the address for the host, or let its configuration come in the initrd")
		}
		return nil
	}
	l, err := tx.FindLease(d.Source)
	switch {
	case inventory.IsKind(err, inventory.NotFound) && slices.Contains(d.host.MACs(), d.neighbour) && isBeside(tx, d.session.Subnet):
		return nil // another server gave the address, and our own network says that the host has it
	case err != nil:
		return refuse("%s holds no lease of ours", d.Source)
	case !slices.Contains(d.host.MACs(), l.MAC):
		return refuse("%s is leased to %s", d.Source, l.MAC)
	case l.State != inventory.LeaseBound || !g.Now().Before(l.ExpiresAt):
		return refuse("the lease of %s has ended", d.Source)
	}
	if mac := d.neighbour; mac != "" && !slices.Contains(d.host.MACs(), mac) {
		return refuse("%s is used by %s, which is no port of %s", d.Source, mac, d.host.Name)
	}
	return nil
}

// isBeside reports whether another server gives the addresses of a subnet.
func isBeside(tx inventory.Tx, subnet string) bool {
	n, err := tx.Subnets().Find(subnet)
	return err == nil && n.Mode == inventory.ModeProxy
}

// SecretRefused is the issue that Slipway refused a request for a host's secrets.
func SecretRefused(id inventory.HostID, cause, hint string) inventory.Issue {
	return inventory.Issue{
		Key: inventory.IssueSecretRefused + "/" + string(id), Type: inventory.IssueSecretRefused,
		Severity: inventory.SeverityError, HostIDs: []inventory.HostID{id}, Cause: cause, Hint: hint,
	}
}

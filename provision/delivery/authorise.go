package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/render"
	"slipway.dev/slipway/provision/configuration"
)

// authorise refuses documents with secrets that are, by now, not for the configuration that names them or for the host. It
// keeps the names of what the documents hold.
func (dl *Deliverer) authorise(tx inventory.Tx, d *delivery) error {
	uses := d.rendering.Uses
	may := configuration.MayUse(tx, &d.host)
	for _, doc := range d.docs {
		if !doc.IsSecret {
			continue
		}
		refs := machineconfig.References([]byte(doc.Text))
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
			if machineconfig.IsSecretRef(ref) {
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
func (dl *Deliverer) noteDelivery(tx inventory.Tx, d *delivery) error {
	if len(d.secrets) == 0 {
		return nil
	}
	return tx.AddAudit(&inventory.Audit{
		At: dl.cfg.Now(), Actor: "host " + d.host.Name, Via: "boot", Source: d.Source.String(), Operation: "deliver-secrets",
		Noun: "host", Name: d.host.Name, HostID: d.host.ID, Status: 200,
		Detail: inventory.Clean("given "+strings.Join(d.secrets, ", ")+" in "+d.Name+" of boot "+string(d.session.ID), 500),
	})
}

// allowed asks all that stands between a machine and documents with secrets. A refusal is not the transaction's error: what
// was noted with it stays.
func (dl *Deliverer) allowed(ctx context.Context, d *delivery) error {
	if dl.cfg.Neighbour != nil { // before the transaction, which others wait for
		d.neighbour, _ = dl.cfg.Neighbour(d.Source)
	}
	var refusal error
	err := dl.cfg.Store.Write(ctx, func(tx inventory.Tx) (err error) {
		d.secrets = nil
		if refusal = dl.authorise(tx, d); refusal != nil {
			return nil
		}
		refusal, err = dl.guard(tx, d)
		return err
	})
	if err != nil {
		return err
	}
	return refusal
}

// listed names the documents that the machine would be given now. Looking through the list gives nothing out, and burns
// nothing.
func (dl *Deliverer) listed(ctx context.Context, d *delivery) (names []string) {
	if dl.cfg.Neighbour != nil {
		d.neighbour, _ = dl.cfg.Neighbour(d.Source)
	}
	for _, doc := range d.rendering.Documents {
		one := *d
		one.Name, one.docs, one.IsPeek = doc.Name, []inventory.RenderedDocument{doc}, true
		if doc.IsSecret && !dl.isStaged(&one) {
			err := dl.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
				if err := dl.authorise(tx, &one); err != nil {
					return err
				}
				refusal, err := dl.guard(tx, &one)
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

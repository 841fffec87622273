package delivery

import (
	"cmp"
	"context"
	"net/netip"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/render"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/pxe"
)

// Minter makes the tokens with which hosts join a target.
type Minter interface {
	// Mint returns a token for one node name of one boot; a repeat for the same boot returns the same one.
	Mint(ctx context.Context, t inventory.JoinTarget, h *inventory.Host, s inventory.SessionID, nodeName string) (string, error)
	// Revoke ends the tokens of a boot, RevokeHost those of a host.
	Revoke(ctx context.Context, s inventory.SessionID) error
	RevokeHost(ctx context.Context, h inventory.HostID) error
}

// Values are the late values of documents: what is put in place only when the machine asks, and is never stored in clear.
type Values struct {
	Store      inventory.Store
	Configurer *configuration.Configurer
	// Renderer reads parts of secrets; nil reads none. Join mints the tokens of those that join a cluster; nil mints none.
	Renderer     *render.Renderer
	Join         Minter
	Bootstrapper *Bootstrapper
	Keys         Keys
	Confidential *Confidential // nil: secrets are sent over HTTP, too
	// Others returns the addresses of other instances that live; nil: there are none.
	Others func() []netip.Addr
}

// inject puts the late values into the documents asked for and packs several into one archive.
func (v *Values) inject(ctx context.Context, d *delivery) (out pxe.ConfigDocument, err error) {
	lookup := func(ref string) ([]byte, error) {
		// A request for the length must not mint a token.
		if d.IsPeek && strings.HasPrefix(ref, "join://") {
			return []byte("000000.0000000000000000"), nil // as long as one that would be minted
		}
		return v.lateValue(ctx, d, ref)
	}
	var files []archived
	isStaged := v.Confidential.stages(d)
	for _, doc := range d.docs {
		if isStaged && doc.IsSecret {
			text, err := v.Confidential.firstStage(v.Keys, d, doc)
			if err != nil {
				return out, err
			}
			doc.Text = string(text)
		}
		data, err := late.Inject([]byte(doc.Text), lookup)
		if err != nil {
			return out, err
		}
		if d.Name != pxe.ConfigArchive {
			return pxe.ConfigDocument{ContentType: cmp.Or(doc.ContentType, "text/plain; charset=utf-8"), Data: data}, nil
		}
		files = append(files, archived{path: doc.Path, data: data})
	}
	return pxe.ConfigDocument{ContentType: "application/octet-stream", Data: archive(files)}, nil
}

// lateValue returns what a reference stands for in this boot.
func (v *Values) lateValue(ctx context.Context, d *delivery, ref string) ([]byte, error) {
	scheme, rest, _ := strings.Cut(ref, "://")
	switch scheme {
	case "session":
		return v.sessionValue(ctx, d, rest)
	case "secret":
		name, part, hasPart := strings.Cut(rest, "#")
		var value []byte
		var err error
		isOurs := false
		// Without bootstrap data a stored secret of the same name counts.
		if name == bootstrapSecret {
			value, isOurs, err = v.Bootstrapper.valueFor(ctx, d)
		}
		if isOurs || err != nil {
			if err == nil && hasPart {
				value, err = v.Renderer.Part(value, part)
			}
			return value, err
		}
		// Opened at the last moment, and never kept: the clear text is in this answer only.
		err = v.Store.Read(ctx, func(tx inventory.Tx) (err error) {
			value, err = v.Configurer.OpenSecret(tx, name)
			return err
		})
		if err == nil && hasPart {
			value, err = v.Renderer.Part(value, part)
		}
		return value, err
	case "join":
		name, what, _ := strings.Cut(rest, "/")
		return v.joinValue(ctx, d, name, what)
	}
	return nil, inventory.Errorf(inventory.Internal, "nothing knows the value of %s", inventory.Clean(ref, 80))
}

func (v *Values) sessionValue(ctx context.Context, d *delivery, what string) ([]byte, error) {
	switch name, isConfig := strings.CutPrefix(what, "config/"); {
	case what == "report":
		return v.urls(ctx, d, func(base string) string { return pxe.URL(base, d.session.ID, "report", v.Keys.ReportKey(d.session.ID)) })
	case what == "base":
		return []byte(strings.TrimRight(d.Base, "/")), nil
	case isConfig:
		return v.urls(ctx, d, func(base string) string { return v.Keys.ConfigURL(base, &d.session, name) })
	}
	return nil, inventory.Errorf(inventory.Internal, "a boot session has no %s", inventory.Clean(what, 80))
}

// urls returns a URL of the boot at each instance that the machine reaches, with blanks between them. The one that it asked comes first. A
// machine asks the next one when one does not answer: its instance may be gone for good before the machine reports.
func (v *Values) urls(ctx context.Context, d *delivery, at func(base string) string) ([]byte, error) {
	var others []netip.Addr
	err := v.Store.Read(ctx, func(tx inventory.Tx) (err error) {
		others, err = OnNetwork(tx, v.Others, d.session.Subnet)
		return err
	})
	if err != nil {
		return nil, err
	}
	all := pxe.OwnFirst(string(d.host.ID), d.Base, others)
	for i, base := range all {
		all[i] = at(base)
	}
	return []byte(strings.Join(all, " ")), nil
}

// joinValue mints, or returns again, what a host needs to join a target.
func (v *Values) joinValue(ctx context.Context, d *delivery, name, what string) ([]byte, error) {
	if v.Join == nil {
		return nil, inventory.Errorf(inventory.Unavailable, "this server mints no join tokens")
	}
	var t inventory.JoinTarget
	err := v.Store.Read(ctx, func(tx inventory.Tx) (err error) {
		t, err = tx.JoinTargets().Find(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	kind, nodeName, _ := strings.Cut(what, "/")
	token, err := v.Join.Mint(ctx, t, &d.host, d.session.ID, cmp.Or(nodeName, d.host.Name))
	if err != nil {
		return nil, err
	}
	switch kind {
	case "token":
		return []byte(token), nil
	case "token-id":
		id, _, _ := strings.Cut(token, ".")
		return []byte(id), nil
	}
	return nil, inventory.Errorf(inventory.Internal, "a join target has no %s", inventory.Clean(what, 80))
}

package redfish

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// slot is one VirtualMedia document.
type slot struct {
	ID           string `json:"Id"`
	Path         string `json:"@odata.id"`
	Image        *string
	Inserted     *bool
	ConnectedVia string
	MediaTypes   []string
	Actions      struct {
		Insert action `json:"#VirtualMedia.InsertMedia"`
		Eject  action `json:"#VirtualMedia.EjectMedia"`
	}
}

// image returns what is inserted, "" for nothing. Some firmware keeps the name of an image that was removed; ConnectedVia then
// shows that nothing is connected.
func (v *slot) image(how behaviour) string {
	if v.Image == nil || v.Inserted != nil && !*v.Inserted || how.keepsImageName && v.ConnectedVia == "NotConnected" {
		return ""
	}
	return *v.Image
}

// isDisc reports whether a drive takes images of discs, in whatever words: CD, DVD, CD/DVD.
func (v *slot) isDisc(how behaviour) bool {
	isDisc := slices.ContainsFunc(v.MediaTypes, func(t string) bool { d, ok := deviceOf(t); return ok && d == bmc.Virtual })
	return isDisc || how.mediaSlot != "" || len(v.MediaTypes) == 0 && strings.HasPrefix(strings.ToUpper(v.ID), "CD")
}

// drive finds the virtual CD drive, in the system or in its manager: version 1.13 of the schema moved it.
func (d *driver) drive(ctx context.Context) (*slot, behaviour, error) {
	s, err := d.system(ctx)
	if err != nil {
		return nil, behaviour{}, err
	}
	how, err := d.behaviour(ctx, s)
	if err != nil {
		return nil, how, err
	}
	refs := []string{s.VirtualMedia.ID}
	m, unread := d.manager(ctx, s)
	if fatal := d.omit(ctx, "the controller's own document", unread); fatal != nil {
		return nil, how, fatal
	}
	if unread == nil {
		refs = append(refs, m.VirtualMedia.ID)
	}
	// The system first, where newer services have the drives.
	for _, ref := range refs {
		docs, err := d.members(ctx, ref)
		if fatal := d.omit(ctx, ref, err); fatal != nil {
			return nil, how, fatal
		}
		if err != nil {
			unread = err
		}
		for _, doc := range docs {
			v := &slot{}
			if decode(doc, v) == nil && v.Path != "" && strings.HasPrefix(v.ID, how.mediaSlot) && v.isDisc(how) {
				return v, how, nil
			}
		}
	}
	if unread != nil && bmc.KindOf(unread) != inventory.NotFound {
		return nil, how, unread // it may have one
	}
	return nil, how, inventory.Errorf(inventory.Invalid, "the controller at %s has no virtual CD drive", d.host()).WithHint("some vendors sell it as an option")
}

// Media returns the URL that is inserted.
func (d *driver) Media(ctx context.Context) (_ string, err error) {
	defer d.safe(&err)
	v, how, err := d.drive(ctx)
	if err != nil {
		return "", err
	}
	return inventory.Clean(v.image(how), 2048), nil
}

// InsertMedia inserts an image after it has removed another one, and waits until the drive holds it. The controller
// fetches the image by itself, so that the URL must be reachable from its network, and must hold no password.
func (d *driver) InsertMedia(ctx context.Context, image string) (err error) {
	defer d.safe(&err)
	u, err := url.Parse(image)
	if err != nil || u.Host == "" || u.Scheme == "" || u.User != nil || inventory.Clean(image, 2048) != image {
		return inventory.Errorf(inventory.Invalid, "%q is not the URL of an image", inventory.Clean(image, 80)).WithHint("write it as http://10.0.0.1/image.iso, without user and password")
	}
	v, how, err := d.drive(ctx)
	if err != nil {
		return err
	}
	switch v.image(how) {
	// The same URL may have other bytes by now. An admin who wants it fetched again ejects it first.
	case image:
		return nil
	case "":
	// A drive that holds something else refuses the order on most controllers, so it is emptied first. A crash in between leaves
	// an empty drive, and the repetition of this call inserts.
	default:
		if err := d.eject(ctx, v, how); err != nil {
			return err
		}
	}
	if v.Actions.Insert.Target != "" {
		err = d.insert(ctx, v, u)
	} else {
		// Services older than the action take a change of the document instead.
		err = d.patch(ctx, v.Path, map[string]any{"Image": image, "Inserted": true, "WriteProtected": true}, "insert an image")
	}
	if err != nil {
		return err
	}
	return d.confirmMedia(ctx, image)
}

// EjectMedia removes the image. It leaves an empty drive alone, because some controllers refuse to empty it.
func (d *driver) EjectMedia(ctx context.Context) (err error) {
	defer d.safe(&err)
	v, how, err := d.drive(ctx)
	if err != nil || v.image(how) == "" {
		return err
	}
	return d.eject(ctx, v, how)
}

func (d *driver) eject(ctx context.Context, v *slot, how behaviour) error {
	var err error
	if target := v.Actions.Eject.Target; target != "" {
		_, err = d.post(ctx, target, struct{}{}, "eject the image") // DSP0266: an empty object, not an empty body
	} else {
		err = d.patch(ctx, v.Path, map[string]any{"Image": nil, "Inserted": false}, "eject the image")
	}
	if err != nil {
		return err
	}
	return d.confirmMedia(ctx, "")
}

// confirmMedia waits until the drive holds what it should: many controllers fetch the image first. It finds the drive again at
// each look, because some services give it another path while it is in use.
func (d *driver) confirmMedia(ctx context.Context, want string) error {
	for n := 0; ; n++ {
		is, err := d.Media(ctx)
		if err != nil {
			return err
		}
		if is == want {
			return nil
		}
		if n+1 >= d.looks {
			return inventory.Errorf(inventory.Unavailable, "the controller at %s took the order, but its virtual drive holds %q", d.host(), inventory.Clean(is, 120)).
				WithHint("look whether the controller reaches the server of the image")
		}
		if err := d.sleep(ctx, d.every); err != nil {
			return d.unreached(ctx, err)
		}
	}
}

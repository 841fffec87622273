package client

import (
	"context"
	"net/http"
	"net/url"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/wire"
)

// Instances is the calls on the servers of one database.
type Instances struct {
	Noun[wire.Instance]
}

// Drain has an instance hold no duties.
func (i Instances) Drain(ctx context.Context, name string) (is wire.Instance, err error) {
	return is, i.c.call(ctx, http.MethodPost, i.at(name)+"/drain", nil, nil, &is)
}

// Undrain lets an instance hold duties again.
func (i Instances) Undrain(ctx context.Context, name string) (is wire.Instance, err error) {
	return is, i.c.call(ctx, http.MethodPost, i.at(name)+"/undrain", nil, nil, &is)
}

// InvitationWish is what an admin wants of an invitation.
type InvitationWish struct {
	Name string             `json:"name,omitempty"` // what the new instance must be called; "" leaves it to the machine
	For  inventory.Duration `json:"for,omitempty"`  // how long its code is good; 0 is 15 minutes
}

// Invite makes an invitation for a machine to become an instance.
func (i Instances) Invite(ctx context.Context, w InvitationWish) (made wire.NewInvitation, err error) {
	return made, i.c.call(ctx, http.MethodPost, invitations, nil, w, &made)
}

// Invitations lists them, the newest first.
func (i Instances) Invitations(ctx context.Context) ([]wire.Invitation, error) {
	var p Page[wire.Invitation]
	err := i.c.call(ctx, http.MethodGet, invitations, nil, nil, &p)
	return p.Items, err
}

// Withdraw ends an invitation.
func (i Instances) Withdraw(ctx context.Context, id string) error {
	return i.c.call(ctx, http.MethodDelete, invitations+"/"+url.PathEscape(id), nil, nil, nil)
}

const invitations = "invitations"

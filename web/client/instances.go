package client

import (
	"context"
	"net/http"

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

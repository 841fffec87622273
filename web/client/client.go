// Package client owns the Go side of the REST API. It has typed calls over a Unix socket or over HTTP with a token, and the
// event stream with resume. Errors are *inventory.Error with kind, message and hint. It never interprets what it carries
// and never tries a write again by itself.
//
// Start reading at New; then Client's fields, one per noun.
package client

import (
	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
	"slipway.dev/slipway/web/wire"
)

// Client speaks to one server. Its methods may be called from many goroutines.
type Client struct {
	Hosts        Hosts
	Subnets      Noun[inventory.Subnet]
	Racks        Racks
	Reservations Noun[inventory.Reservation]
	Leases       Noun[inventory.Lease]
	Addresses    Addresses
	Artefacts    Noun[inventory.Artefact]
	Images       Noun[inventory.Image]
	Imports      Noun[images.Job] // those that the server remembers, oldest first; to delete one stops it
	Profiles     Configs[inventory.Profile]
	Layers       Configs[inventory.Layer] // by key, with a host's name: global, site/NAME, rack/NAME, host/NAME
	Secrets      Noun[inventory.Secret]   // without their values
	Targets      Noun[inventory.JoinTarget]
	Clusters     Clusters
	Machines     Machines
	Pools        Noun[wire.Pool]
	Views        Noun[wire.KeptView]
	Operations   Operations
	BMCs         Noun[wire.HostBMC]
	Sessions     Noun[inventory.BootSession]
	Issues       Noun[inventory.Issue]
	Tokens       Noun[inventory.Token]
	Users        Noun[inventory.User]
	AcceptRules  Noun[inventory.AcceptRule]
	Audit        Noun[inventory.Audit] // latest first
	Instances    Instances

	*connection
}

// New returns a client; it does not connect yet.
func New(cfg Config) (*Client, error) {
	to, err := connect(cfg)
	if err != nil {
		return nil, err
	}
	c := &Client{connection: to}
	c.Hosts = Hosts{Noun: Noun[inventory.Host]{to, "hosts"}}
	c.Subnets = Of(c, noun.Subnets)
	c.Racks = Racks{Noun[Rack]{to, "racks"}}
	c.Reservations = Noun[inventory.Reservation]{to, "reservations"}
	c.Leases = Noun[inventory.Lease]{to, "leases"}
	c.Addresses = Addresses{Noun[wire.Address]{to, "addresses"}}
	c.Artefacts = Noun[inventory.Artefact]{to, "artefacts"}
	c.Images = Of(c, noun.Images)
	c.Imports = Noun[images.Job]{to, "imports"}
	c.Profiles = Configs[inventory.Profile]{Of(c, noun.Profiles)}
	c.Layers = Configs[inventory.Layer]{Of(c, noun.Layers)}
	c.Secrets = Of(c, noun.Secrets)
	c.Targets = Of(c, noun.JoinTargets)
	c.Clusters = Clusters{Of(c, noun.Clusters)}
	c.Machines = Machines{Noun[inventory.Machine]{to, "machines"}}
	c.Pools = Noun[wire.Pool]{to, "pools"}
	c.Views = Noun[wire.KeptView]{to, "views"}
	c.BMCs = Noun[wire.HostBMC]{to, "bmcs"}
	c.Operations = Operations{Noun[inventory.Operation]{to, "operations"}}
	c.Sessions = Noun[inventory.BootSession]{to, "sessions"}
	c.Issues = Noun[inventory.Issue]{to, "issues"}
	c.Users = Of(c, noun.Users)
	c.Tokens = Noun[inventory.Token]{to, "tokens"}
	c.AcceptRules = Of(c, noun.AcceptRules)
	c.Audit = Noun[inventory.Audit]{to, "audit"}
	c.Instances = Instances{Noun[wire.Instance]{to, "instances"}}
	return c, nil
}

// Close gives up idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Of is the calls for a plain noun.
func Of[R any](c *Client, n noun.Noun[R]) Noun[R] { return Noun[R]{c.connection, n.Many} }

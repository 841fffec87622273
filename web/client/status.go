package client

import (
	"context"
	"net/http"
	"time"
)

// Sample is what the server did in a span of time, per second.
type Sample struct {
	At          time.Time `json:"at"` // when the span ended
	DHCPReplies float64   `json:"dhcpReplies"`
	DHCPDrops   float64   `json:"dhcpDrops"`
	TFTPBytes   float64   `json:"tftpBytes"`
	HTTPBytes   float64   `json:"httpBytes"`
	Boots       float64   `json:"boots"`
}

// Stats are samples of equal spans, oldest first.
type Stats struct {
	StepSeconds int      `json:"stepSeconds"`
	Samples     []Sample `json:"samples"`
}

// Stats returns how busy the server was in the last hour, minute by minute.
func (c *Client) Stats(ctx context.Context) (s Stats, err error) {
	return s, c.call(ctx, http.MethodGet, "stats", nil, nil, &s)
}

// Part is a Go module in the server.
type Part struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// About is what the server is made of.
type About struct {
	Version   string    `json:"version"`
	Go        string    `json:"go"`
	Platform  string    `json:"platform"`
	StartedAt time.Time `json:"startedAt"`
	Parts     []Part    `json:"parts"`
}

// About returns what the server is made of.
func (c *Client) About(ctx context.Context) (a About, err error) {
	return a, c.call(ctx, http.MethodGet, "about", nil, nil, &a)
}

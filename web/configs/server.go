package configs

import (
	"context"
	"time"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/web/rest"
)

// Config is what a Server needs.
type Config struct {
	Frame *rest.Frame
	// Renderer says what configurations make of hosts; nil: nothing is rendered, and configurations are saved unseen.
	Renderer  Renderer
	Secrets   Sealer // nil: no secret can be stored
	Catalogue []images.Entry
}

// Server answers these requests.
type Server struct {
	cfg  Config
	rest *rest.Frame
}

// Renderer is the part of the engine about configurations. Nothing of it changes anything.
type Renderer interface {
	// Preview returns what a host would be given now, or with a draft of a profile.
	Preview(ctx context.Context, id inventory.HostID, draft *inventory.Profile) (configuration.Preview, error)
	// CheckProfile and CheckLayer return what saving one would do to the hosts that use it.
	CheckProfile(ctx context.Context, p *inventory.Profile) (configuration.Impact, error)
	CheckLayer(ctx context.Context, l *inventory.Layer) (configuration.Impact, error)
	// Capabilities returns, by format, what it can say to a target.
	Capabilities(t machineconfig.Target) map[string]machineconfig.Capabilities
}

// Sealer seals the values of secrets. Only the engine opens again what it seals.
type Sealer interface {
	Seal(name string, plain []byte) ([]byte, error)
}

// Limits of operations on configurations: their text is up to 1 MiB, which JSON may double, and a save renders every
// host that uses it.
const (
	configBody = 5 << 20
	checkFor   = time.Minute
)

func errNoConfigs() error {
	return inventory.Errorf(inventory.Unavailable, "this server renders no configurations")
}

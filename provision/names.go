package provision

import (
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/provision/claim"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/provision/power"
	"slipway.dev/slipway/provision/strangers"
	"slipway.dev/slipway/provision/watch"
)

// What callers of the engine name, and rooms below it have.
type (
	// Asker says who asks the engine for something, and how the engine has to do it.
	Asker = ledger.Asker
	// Witness writes down what somebody asks the engine for.
	Witness = ledger.Witness
	// Impact is what saving a profile or layer would do to the hosts that use it.
	Impact = configuration.Impact
	// HostImpact is what an edit would do to one host.
	HostImpact = configuration.HostImpact
	// Preview is what a host would be given.
	Preview = configuration.Preview
	// Secrets opens what may not be stored in clear.
	Secrets = configuration.Secrets
	// Diagnosis is why a machine does not boot.
	Diagnosis = watch.Diagnosis
	// Expected is the next thing that should happen with a host.
	Expected = watch.Expected
	// Confidential makes a site send secrets over TLS only.
	Confidential = delivery.Confidential
	// Minter makes the tokens with which hosts join a target.
	Minter = delivery.Minter
	// Shed counts what was not stored.
	Shed = strangers.Shed
	// Rung is one step of the remediation ladder.
	Rung = operation.Rung
	// InspectRequest is an inspection that a person orders.
	InspectRequest = operation.InspectRequest
	// Nodes empties and deletes the Kubernetes nodes on machines.
	Nodes = operation.Nodes
	// Sealer seals what may not be stored in clear.
	Sealer = power.Sealer
	// Wire is the record of what machines said.
	Wire = watch.Wire
)

// By is an asker with no more than a name.
func By(name string) Asker { return ledger.By(name) }

// SelectProfile returns the profile that a host boots.
func SelectProfile(h *inventory.Host, profiles []inventory.Profile) (inventory.Profile, *inventory.Error) {
	return configuration.SelectProfile(h, profiles)
}

// Redacted returns a rendering as people may see it.
func Redacted(r inventory.Rendering) inventory.Rendering { return configuration.Redacted(r) }

// StepNames lists the names that Config.Deadlines may have.
func StepNames() []string { return operation.StepNames() }

// Way returns the steps of an operation in order, those that it has passed included.
func Way(o *inventory.Operation) []inventory.Step { return operation.Way(o) }

// ImageOf returns the image that an operation installs, "" if it installs none.
func ImageOf(o *inventory.Operation) string { return operation.ImageOf(o) }

// PoolCount counts the accepted hosts that a pool's selector matches.
func PoolCount(tx inventory.Tx, p inventory.Pool) (contract.PoolCount, error) {
	return claim.PoolCount(tx, p)
}

// PoolCounts counts for several pools, reading every host once.
func PoolCounts(tx inventory.Tx, pools []inventory.Pool) ([]contract.PoolCount, error) {
	return claim.PoolCounts(tx, pools)
}

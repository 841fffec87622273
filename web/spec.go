package web

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/web/rest"
)

// stamps are the fields of every stored noun that the server fills in, like ownFields.
var stamps = []string{"createdAt", "updatedAt", "version"}

// ownFields are the other fields of each noun that the server fills in: they may be in a request, so that what was read
// can be sent back, and are not looked at.
var ownFields = map[string][]string{
	"Host": {
		"id", "state", "stateReason", "stateSinceAt", "inMaintenance", "isProtected", "isArmed", "firmware", "memoryMiB",
		"facts", "lastSeenAt", "identifiedAt", "claimID", "machine", "isDirty", "failureN", "reuseKey",
		"freedAt",
	},
	"NIC":      {"vendor", "isBoot"},
	"Profile":  {"revision"},
	"Layer":    {"revision"},
	"Cluster":  {"state", "reason", "hint", "uid", "kubernetes", "seenAt"},
	"KeptView": {"owner"},
	"User":     {"loginAt", "hasPassword"},
	"Machine":  machineOwn, "AdoptMachine": machineOwn,
	"Hook": {"ackedAt"},
	"Pool": {"hosts"},
	"Rack": {"id", "hostN", "faults"},
	"SetBMC": {
		"host", "hostID", "power", "powerAt", "isReachable", "reason", "vendor", "model", "firmware", "capabilities", "checkedAt", "lastCheck",
	},
}

var machineOwn = []string{
	"uid", "hostID", "claimID", "phase", "reason", "hint", "attemptN", "avoid", "deletedAt", "isForced", "nextAt",
}

// optional are the fields that have a default, or that the address of a PUT names. Those of plain nouns are in the table of package noun.
var optional = map[string][]string{
	"Host":        {"name", "place", "isAdopted", "isCordoned", "isRetained"},
	"Reservation": {"address", "subnet"},
	"Machine":     {"name", "placement", "rootDisk", "drain"},
}

// words are the fields that know only some words.
func words() map[string][]string {
	states := []string{}
	for _, st := range inventory.States() {
		states = append(states, string(st))
	}
	arch := []string{string(inventory.X8664), string(inventory.I386), string(inventory.ARM64)}
	modes, hooks, drivers := []string{""}, []string{}, []string{}
	for _, m := range inventory.CleanModes() {
		modes = append(modes, string(m))
	}
	for _, h := range inventory.HookSteps() {
		hooks = append(hooks, string(h))
	}
	for _, d := range inventory.BMCDrivers() {
		drivers = append(drivers, string(d))
	}
	return map[string][]string{
		"Host.state": states, "Host.arch": arch, "Host.diskBoot": {"no-offer", "exit", "sanboot", ""},
		"Subnet.mode":    modeWords(),
		"Subnet.unknown": {string(inventory.UnknownDisk), string(inventory.UnknownWait), string(inventory.UnknownIgnore)},
		"Image.arch":     arch, "Lease.state": {"bound", "released", "declined"}, "Issue.severity": {"warning", "error"},
		"BootSession.proof": {"", string(inventory.ProofNone), string(inventory.ProofOrder), string(inventory.ProofPower), string(inventory.ProofPort), string(inventory.ProofPerson)},
		"Problem.kind":      {"invalid", "not-found", "conflict", "unauthorized", "forbidden", "unavailable", "internal"},
		"Job.state":         {"waiting", "running", "done", "failed"},
		"Layer.scope":       {string(inventory.ScopeGlobal), string(inventory.ScopeSite), string(inventory.ScopeRack), string(inventory.ScopeHost)},
		"JoinToken.state": {
			string(inventory.TokenMinted), string(inventory.TokenSpent), string(inventory.TokenJoined), string(inventory.TokenRevoked),
		},
		"Machine.phase": {"pending", "provisioning", "running", "deleting", "failed"}, "Machine.releaseAfter": {"fenced", "cleaned", ""},
		"Machine.clean": modes, "AdoptMachine.clean": modes, "Pool.clean": modes, "Hook.step": hooks, "Image.diskFormat": inventory.DiskFormats(),
		"Placement.reuse": {"any", "prefer-same", "require-same", ""},
		"Cluster.state":   {"attaching", "attached", "standby", "unreachable", "failed"},
		"Operation.state": {"running", "waiting", "done", "failed", "cancelled"},
		"Operation.kind":  {"inspect", "install", "reinstall", "release", "clean", "power", "remediate", "rotate"},
		"HostBMC.driver":  drivers, "SetBMC.driver": drivers, "HostBMC.power": {"on", "off", "unknown", ""}, "Report.kind": {"burn-in", "wipe", "install"},
		"Finding.severity": {string(machineconfig.SeverityError), string(machineconfig.SeverityWarning)},
	}
}

// formats are the fields whose text has a form that JSON Schema or we have a name for.
var formats = map[string]string{
	"Subnet.cidr": "cidr", "Route.to": "cidr", "Subnet.leaseFor": "go-duration", "Subnet.bootLeaseFor": "go-duration", "NIC.mac": "mac",
	"JoinTarget.tokenFor": "go-duration",
	"Drain.timeout":       "go-duration", "Drain.volumeTimeout": "go-duration", "Drain.forgetTimeout": "go-duration",
	"InspectRequest.burnInFor": "go-duration", "Pool.burnInFor": "go-duration", "Budget.destroyInterval": "go-duration",
	"Port.mac": "mac", "SetBMC.mac": "mac", "HostBMC.mac": "mac", "FoundBMC.mac": "mac",
	"Reservation.mac": "mac", "Lease.mac": "mac", "BootSession.mac": "mac", "Event.mac": "mac",
}

// finishSpec writes into the description what the types of package inventory cannot say: they know nothing of web.
func finishSpec(api *huma.OpenAPI) {
	schemas, known := api.Components.Schemas.Map(), words()
	for name, s := range schemas {
		mayLack := slices.Concat(optional[name], noun.Optional(name))
		isStored := !slices.ContainsFunc(stamps, func(field string) bool { return s.Properties[field] == nil })
		for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
			p := s.Properties[field]
			if slices.Contains(ownFields[name], field) || isStored && slices.Contains(stamps, field) {
				p.ReadOnly = true
			}
			if slices.Contains(mayLack, field) {
				s.Required = slices.DeleteFunc(s.Required, func(r string) bool { return r == field })
			}
			for _, w := range known[name+"."+field] {
				p.Enum = append(p.Enum, w)
			}
			if f := formats[name+"."+field]; f != "" {
				p.Format = f
			}
			plainLists(p)
			p.PrecomputeMessages()
		}
		s.PrecomputeMessages()
	}
	for _, n := range noun.Screens() {
		schemas[n.Type].Extensions = map[string]any{"x-noun": described{n.One, n.Many, n.Needs, n.Screen}}
	}
}

// described is x-noun: what draws the table and the form of a noun.
type described struct {
	One   string             `json:"one"`
	Many  string             `json:"many"`
	Needs inventory.UserRole `json:"needs"`
	*noun.Screen
}

// plainLists says that lists are never null.
func plainLists(s *huma.Schema) {
	if s.Type == huma.TypeArray {
		s.Nullable = false
	}
	if s.Items != nil {
		plainLists(s.Items)
	}
}

// descriptionOf returns what writes the description as YAML, as the schemas are now. The first call takes a fifth of a second of
// processor time, more than all else that New does. So it happens when somebody asks, and not at each start.
func descriptionOf(api *huma.OpenAPI) func() ([]byte, error) {
	finished := describedSchemas{api.Components.Schemas, map[string]*huma.Schema{}}
	for name, s := range api.Components.Schemas.Map() {
		own := *s
		own.Properties = maps.Clone(s.Properties) // loosen replaces some of those in s
		finished.byName[name] = &own
	}
	doc, components := *api, *api.Components
	components.Schemas, doc.Components = finished, &components
	return sync.OnceValues(doc.YAML)
}

// describedSchemas is a registry that writes other schemas than those by which requests are checked.
type describedSchemas struct {
	huma.Registry
	byName map[string]*huma.Schema
}

// The library writes what Map has when it leaves out schemas that nothing uses, and the registry itself when all are used.

func (s describedSchemas) Map() map[string]*huma.Schema { return s.byName }

func (s describedSchemas) MarshalJSON() ([]byte, error) { return json.Marshal(s.byName) }

// loosen takes the constraints off what only the server fills in. A request may carry it, and it is not looked at.
func loosen(api *huma.OpenAPI) {
	for _, s := range api.Components.Schemas.Map() {
		for field, p := range s.Properties {
			if p.ReadOnly && p.Ref == "" {
				s.Properties[field] = &huma.Schema{ReadOnly: true}
			}
		}
		s.PrecomputeMessages()
	}
}

func modeWords() (words []string) {
	for _, m := range inventory.SubnetModes() {
		words = append(words, string(m))
	}
	return words
}

// moving are the fields of hosts, machines and BMCs that nobody edits: they say how things are. What counts for the undo of an edit
// is whether the fields that it changed still are as it left them.
var moving = append(slices.Clone(rest.Bookkeeping), slices.Concat(ownFields["Host"], machineOwn, ownFields["SetBMC"])...)

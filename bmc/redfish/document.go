package redfish

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"path"
	"strconv"
	"strings"

	"slipway.dev/slipway/inventory"
)

// link points to another document.
type link struct {
	ID string `json:"@odata.id"`
}

// action is an operation that a document offers.
type action struct {
	Target     string   `json:"target"`
	ActionInfo string   `json:"@Redfish.ActionInfo"` // names its parameters
	ResetTypes []string `json:"ResetType@Redfish.AllowableValues"`
	Protocols  []string `json:"TransferProtocolType@Redfish.AllowableValues"`
}

// parameter is one of an action, as its ActionInfo tells.
type parameter struct {
	Name            string
	Required        bool
	AllowableValues []string
}

// status is how well something is.
type status struct {
	Health       string // of itself
	HealthRollup string // of its parts as well
	State        string // Enabled, Absent and others
}

// serviceRoot is /redfish/v1/, which everyone may read.
type serviceRoot struct {
	RedfishVersion string
	UUID           string
	Name           string
	Vendor         string
	Product        string
	Systems        link
	Managers       link
	Chassis        link
	AccountService link
	Links          struct{ Sessions link }
	Oem            map[string]json.RawMessage

	ProtocolFeaturesSupported struct {
		ExpandQuery  struct{ NoLinks bool } // $expand=. is known
		TopSkipQuery bool
	}
}

// system is a ComputerSystem. ID is its path.
type system struct {
	ID           string `json:"-"`
	Name         string
	UUID         string
	SerialNumber string
	HostName     string
	Manufacturer string
	Model        string
	SKU          string
	AssetTag     string
	BiosVersion  string
	PowerState   string
	// LastResetTime is when the machine was reset or rebooted last, by the controller's clock.
	LastResetTime string
	Status        status
	Boot          bootSettings
	Settings      struct {
		SettingsObject link
	} `json:"@Redfish.Settings"`

	LocationIndicatorActive *bool
	IndicatorLED            *string

	ProcessorSummary struct {
		Count                 number
		CoreCount             number
		LogicalProcessorCount number
		Model                 string
	}
	MemorySummary      struct{ TotalSystemMemoryGiB number }
	TrustedModules     []trustedModule
	Processors         link
	Memory             link
	Storage            link
	EthernetInterfaces link
	LogServices        link
	VirtualMedia       link
	SecureBoot         link

	Links struct {
		Chassis   []link
		ManagedBy []link
	}
	Actions struct {
		Reset action `json:"#ComputerSystem.Reset"`
	}
}

type trustedModule struct {
	InterfaceType string
	Status        status
}

// bootSettings is the boot override. Pointers tell what a controller does not know from what it leaves empty.
type bootSettings struct {
	Target      string  `json:"BootSourceOverrideTarget"`
	Enabled     string  `json:"BootSourceOverrideEnabled"`
	Mode        *string `json:"BootSourceOverrideMode"`
	HTTPBootURI *string `json:"HttpBootUri"`
	UefiTarget  string  `json:"UefiTargetBootSourceOverride"`
	BootOptions link

	Targets  []string `json:"BootSourceOverrideTarget@Redfish.AllowableValues"`
	Enableds []string `json:"BootSourceOverrideEnabled@Redfish.AllowableValues"`
	Modes    []string `json:"BootSourceOverrideMode@Redfish.AllowableValues"`
	// hasURI says that the document has an HttpBootUri, be it null.
	hasURI bool
}

// UnmarshalJSON also notes whether there is an HttpBootUri.
func (b *bootSettings) UnmarshalJSON(raw []byte) error {
	// plain has the fields and not this method, which would call itself.
	type plain bootSettings
	var p plain
	// The tolerance is needed here again: decode forgives a wrong type, but not an error from a method of a field.
	if err := tolerate(json.Unmarshal(raw, &p)); err != nil {
		return err
	}
	*b = bootSettings(p)
	var keys map[string]json.RawMessage
	if json.Unmarshal(raw, &keys) == nil {
		_, b.hasURI = keys["HttpBootUri"]
	}
	return nil
}

// manager is the controller itself.
type manager struct {
	Name               string
	Model              string
	FirmwareVersion    string
	DateTime           string
	EthernetInterfaces link
	LogServices        link
	VirtualMedia       link
	Actions            struct {
		Reset action `json:"#Manager.Reset"`
	}
}

// collection is a page of links to documents, or of the documents themselves where $expand is known.
type collection struct {
	Members []json.RawMessage
	Next    string `json:"Members@odata.nextLink"`
	Count   number `json:"Members@odata.count"`
}

// number is a number, which some controllers write as text.
type number float64

// UnmarshalJSON implements json.Unmarshaler. A value that is not a number becomes 0.
func (n *number) UnmarshalJSON(raw []byte) error {
	text := strings.TrimSpace(strings.Trim(string(raw), `"`))
	v, err := strconv.ParseFloat(text, 64)
	// ParseFloat reads "NaN" and "Inf", which no comparison with a bound would catch later.
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		v = 0
	}
	*n = number(v)
	return nil
}

// decode reads a document. Properties of the wrong type stay empty: controllers write "" for numbers that they do not
// know, and one sensor must not hide the rest.
func decode(raw []byte, into any) error {
	raw = bytes.TrimSpace(raw)
	// Login pages and error texts come with status 200. null would decode into an empty document without an error.
	if len(raw) == 0 || raw[0] != '{' {
		return errNotJSON
	}
	if tolerate(json.Unmarshal(raw, into)) != nil {
		return errNotJSON
	}
	return nil
}

var errNotJSON = errors.New("no JSON object")

// tolerate forgives values of the wrong type: encoding/json has then filled in all others.
func tolerate(err error) error {
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// lastSegment returns a document's id, which is how its path ends.
func lastSegment(ref string) string {
	return path.Base(strings.TrimRight(ref, "/"))
}

// clean makes a controller's text fit to be stored and shown.
func clean(s string) string { return inventory.Clean(strings.Join(strings.Fields(s), " "), 200) }

package inventory

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// BMCDriver is the way a host is powered.
type BMCDriver string

// The drivers.
const (
	Redfish BMCDriver = "redfish" // a BMC that speaks DMTF Redfish over HTTPS
	IPMI    BMCDriver = "ipmi"    // a BMC that speaks IPMI 2.0 over UDP 623
	Libvirt BMCDriver = "libvirt" // a virtual machine
	WoL     BMCDriver = "wol"     // Wake-on-LAN: it can only be switched on
	Webhook BMCDriver = "webhook" // a PDU, a smart plug or anything else that answers HTTP
	Manual  BMCDriver = "manual"  // Slipway asks a person, who confirms
	FakeBMC BMCDriver = "fake"    // simulated, for tests and demonstrations
)

// BMCDrivers returns all drivers.
func BMCDrivers() []BMCDriver {
	return []BMCDriver{Redfish, IPMI, Libvirt, WoL, Webhook, Manual, FakeBMC}
}

// PowerState says whether a host is on. It is the last state that Slipway read, never the ordered one.
type PowerState string

// The power states.
const (
	PowerOn      PowerState = "on"
	PowerOff     PowerState = "off"
	PowerUnknown PowerState = "unknown" // it cannot be read
)

// BMC is how one host is powered, and what its controller last said. No host needs one.
type BMC struct {
	HostID HostID    `json:"hostID"`
	Driver BMCDriver `json:"driver"`
	// Address is a URL for redfish and webhook, host[:port] for ipmi, a libvirt URI such as qemu:///system or
	// unix:///path for libvirt, a broadcast address for wol or "" for the one of the host's subnet, and "" for manual.
	Address  string `json:"address,omitempty"`
	Username string `json:"username,omitempty"`
	Sealed   []byte `json:"-"` // its password, sealed; package secret has the key
	// Others are passwords that the same account had or is to get, newest first. None is thrown away before another one is
	// known to let us in.
	Others []OtherPassword `json:"-"`
	// System names which machine behind the address it is: a Redfish system's id, a libvirt domain. "" when there is one.
	System string `json:"system,omitempty"`
	// InsecureSkipVerify accepts any certificate; Fingerprint (hex SHA-256 of the certificate) is the better way.
	InsecureSkipVerify bool              `json:"insecureSkipVerify,omitempty"`
	Fingerprint        string            `json:"fingerprint,omitempty"`
	MAC                MAC               `json:"mac,omitempty"` // of the controller's own port
	Options            map[string]string `json:"options,omitempty"`

	// What the controller said.
	Power        PowerState `json:"power,omitempty"`
	PowerAt      time.Time  `json:"powerAt,omitzero"` // when Power was read
	IsReachable  bool       `json:"isReachable"`
	Reason       string     `json:"reason,omitempty"` // why it is not reachable, or what a person has to do
	Vendor       string     `json:"vendor,omitempty"`
	Model        string     `json:"model,omitempty"`
	Firmware     string     `json:"firmware,omitempty"`
	Capabilities []string   `json:"capabilities,omitempty"` // what it can do: power, boot, media, locate, sensors, log, users, console, inventory
	CheckedAt    time.Time  `json:"checkedAt,omitzero"`
	LastCheck    *LastCheck `json:"lastCheck,omitempty"` // the last that somebody asked for
	CreatedAt    time.Time  `json:"createdAt"`
	UpdatedAt    time.Time  `json:"updatedAt"`
	Version      int64      `json:"version"`
	Refs         []Ref      `json:"-"` // what Reason and LastCheck name besides the host
}

// OtherPassword is a password that the account of a controller may have instead of the one in use.
type OtherPassword struct {
	Sealed []byte    `json:"sealed"`
	At     time.Time `json:"at"` // when it came here
	// IsNext says that Slipway has sent it to the controller, which has not let Slipway in with it yet.
	IsNext bool `json:"isNext,omitempty"`
	// IsRefused says that the controller refused it when it was tried last.
	IsRefused bool `json:"isRefused,omitempty"`
}

// LastCheck is what came of a check of a controller.
type LastCheck struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	IsGood bool      `json:"isGood"`
	Detail string    `json:"detail"` // what it answered, or what was wrong
}

// Validate checks a BMC by itself. Its driver checks the options.
func (b *BMC) Validate() error {
	if !slices.Contains(BMCDrivers(), b.Driver) {
		return Errorf(Invalid, "%q is not a way to power a host", Clean(string(b.Driver), 40)).WithHint("use one of %v", BMCDrivers())
	}
	for field, text := range map[string]string{"address": b.Address, "username": b.Username, "system": b.System} {
		if err := CheckText("bmc: "+field, text, 512); err != nil {
			return err
		}
	}
	switch b.Driver {
	case Redfish, Webhook:
		if u, err := url.Parse(b.Address); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
			return Errorf(Invalid, "bmc: the address is not the URL of a %s controller", b.Driver).
				WithHint("write it as https://10.0.0.5, and user and password in fields of their own")
		}
	case IPMI:
		if b.Address == "" || strings.ContainsAny(b.Address, "/@ ") {
			return Errorf(Invalid, "bmc: the address is not that of an IPMI controller").WithHint("write it as 10.0.0.5 or 10.0.0.5:623")
		}
	case Libvirt:
		if b.System == "" {
			return Errorf(Invalid, "bmc: libvirt needs the name of the domain as system")
		}
	}
	if b.MAC != "" {
		if m, err := ParseMAC(string(b.MAC)); err != nil || m != b.MAC {
			return Errorf(Invalid, "bmc: %q is not a MAC address", Clean(string(b.MAC), 40))
		}
	}
	if b.Fingerprint != "" {
		if _, err := ParseDigest(strings.ReplaceAll(b.Fingerprint, ":", "")); err != nil {
			return Errorf(Invalid, "bmc: the fingerprint is not a SHA-256").WithHint("64 hex digits: openssl x509 -fingerprint -sha256")
		}
	}
	if len(b.Options) > 32 {
		return Errorf(Invalid, "bmc: %d options; at most 32 are allowed", len(b.Options))
	}
	for k, v := range b.Options {
		if err := CheckText(fmt.Sprintf("bmc: option %q", Clean(k, 40)), k+v, 4096); err != nil {
			return err
		}
	}
	return nil
}

// IsSecretOption reports whether an option of a BMC may hold a secret, and is stored sealed: the headers of a webhook, a
// SecureOn password.
func IsSecretOption(key string) bool { return strings.HasPrefix(key, "header.") || key == "secureon" }

// Package wire owns the bodies of the REST API that the server and its clients share: what is written and read as JSON. Each
// has one definition, and the API's description takes its words from here. It never decides anything, and it has no handlers.
package wire

import (
	"net/netip"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/transfer"
)

// About is what the server is made of.
type About struct {
	Instance  string    `json:"instance,omitempty" doc:"The server of the database that answers; absent: there can be only one"`
	Version   string    `json:"version"`
	Go        string    `json:"go" doc:"Version of Go that it was built with"`
	Platform  string    `json:"platform" doc:"Operating system and architecture"`
	StartedAt time.Time `json:"startedAt"`
	Parts     []Part    `json:"parts" doc:"The Go modules in it; their licences are listed by the web UI"`
}

// Part is a Go module in this program.
type Part struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// The kinds of databases.
const (
	DatabaseSQLite     = "sqlite"
	DatabasePostgreSQL = "postgresql"
)

// Database is where the inventory is, and how that database is.
type Database struct {
	Kind             string            `json:"kind" enum:"sqlite,postgresql"`
	Address          string            `json:"address" doc:"The file, or the servers, the user and the database; never the password"`
	Server           string            `json:"server,omitempty" doc:"The PostgreSQL server that answers, or answered last"`
	Version          string            `json:"version,omitempty" doc:"Version of PostgreSQL"`
	IsReachable      bool              `json:"isReachable"`
	Reason           string            `json:"reason,omitempty" doc:"Why it is not reachable"`
	Hint             string            `json:"hint,omitempty"`
	RoundTripSeconds float64           `json:"roundTripSeconds" doc:"How long the server took to answer a statement that does nothing"`
	IsDurable        *bool             `json:"isDurable,omitempty" doc:"Whether acknowledged changes survive a failover; absent: unknown"`
	Risks            []DatabaseRisk    `json:"risks" doc:"Why they may not"`
	Standbys         []DatabaseStandby `json:"standbys" doc:"The servers that copy the changes"`
	WaitsFor         string            `json:"waitsFor,omitempty" doc:"The standby that each commit waits for although it is not connected"`
	LostCommits      int64             `json:"lostCommits,omitempty" doc:"How many acknowledged commits a failover has lost within a day"`
}

// DatabaseRisk is why an acknowledged change can be lost.
type DatabaseRisk struct {
	Cause string `json:"cause"`
	Hint  string `json:"hint"`
}

// DatabaseStandby is a server that copies the changes.
type DatabaseStandby struct {
	Name       string  `json:"name"`
	Address    string  `json:"address,omitempty"`
	State      string  `json:"state,omitempty" doc:"Such as streaming; absent: the user of Slipway may not see it, nor the lag"`
	Sync       string  `json:"sync,omitempty" doc:"sync, quorum, potential or async"`
	LagBytes   int64   `json:"lagBytes" doc:"How much its disk lacks"`
	LagSeconds float64 `json:"lagSeconds" doc:"How long the last change took to its disk"`
}

// Sample is what the server did in a span of time, per second.
type Sample struct {
	At          time.Time `json:"at" doc:"When the span ended"`
	DHCPReplies float64   `json:"dhcpReplies" doc:"Answers of DHCP per second"`
	DHCPDrops   float64   `json:"dhcpDrops" doc:"DHCP packets per second that stayed unanswered"`
	TFTPBytes   float64   `json:"tftpBytes" doc:"Bytes per second by TFTP"`
	HTTPBytes   float64   `json:"httpBytes" doc:"Bytes of files per second from the boot listener"`
	Boots       float64   `json:"boots" doc:"Boots that began, per second"`
}

// Stats are samples of equal spans, oldest first. They begin at zero with each start of the server.
type Stats struct {
	Instance    string   `json:"instance,omitempty" doc:"The server that took them: the one with the engine"`
	StepSeconds int      `json:"stepSeconds" doc:"Length of the spans"`
	Samples     []Sample `json:"samples" doc:"Of the last hour at most"`
}

// VersionInfo is what the server is.
type VersionInfo struct {
	Version string `json:"version"`
	Go      string `json:"go" doc:"Version of Go that it was built with"`
}

// Check is one line of the self-check.
type Check struct {
	Name   string `json:"name"`
	Status string `json:"status" enum:"ok,warning,error"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
	// Instance is absent when there can be only one.
	Instance string `json:"instance,omitempty" doc:"The server whose machine it is about; absent: it is about the site"`
	IsHere   bool   `json:"isHere,omitempty" doc:"It is about the server that answers"`
}

// TLSState is the state of TLS on the admin listener.
type TLSState struct {
	IsOn        bool      `json:"isOn" doc:"false: the listener is on loopback and speaks without TLS"`
	From        string    `json:"from,omitempty" enum:"files,uploaded,site" doc:"Where the certificate comes from; site is this site's own authority, which signs one for each address"`
	Subject     string    `json:"subject,omitempty"`
	Issuer      string    `json:"issuer,omitempty"`
	Names       []string  `json:"names,omitempty" doc:"Names and addresses that it is good for"`
	NotBefore   time.Time `json:"notBefore,omitzero"`
	NotAfter    time.Time `json:"notAfter,omitzero"`
	Fingerprint string    `json:"fingerprint,omitempty" doc:"SHA-256 of the certificate in hex; of the authority's where from is site"`
	CA          string    `json:"ca,omitempty" doc:"The authority's certificate, PEM, where from is site; clients trust it with --ca-file"`
	IsPrepared  bool      `json:"isPrepared,omitempty" doc:"The authority that comes after is made; ca has it, too"`
	Refused     string    `json:"refused,omitempty" doc:"Why the newest files are not in force"`
}

// Address is a static address that a machine has, or a host that no machine has.
type Address struct {
	Address netip.Addr       `json:"address"`
	Subnet  string           `json:"subnet,omitempty" doc:"Whose static ranges it is from; empty for one that a configuration names"`
	Machine string           `json:"machine,omitempty"`
	HostID  inventory.HostID `json:"hostID,omitempty"`
	Host    string           `json:"host,omitempty" doc:"The host itself, or the one that the machine has"`
	From    string           `json:"from" enum:"subnet,person,configuration,left" doc:"Who chose it: the lowest free one of a subnet, a person, a configuration; left: its machine is gone, and its old system may run"`
	Source  string           `json:"source,omitempty" doc:"Layer and line of a configuration, or why it is left"`
	IsTwice bool             `json:"isTwice,omitempty" doc:"Another has it, too"`
	// CreatedAt is zero for one that a configuration names.
	CreatedAt time.Time `json:"createdAt,omitzero"`
}

// Interface is a network interface of the server.
type Interface struct {
	Name      string         `json:"name"`
	MAC       inventory.MAC  `json:"mac,omitempty"`
	IsUp      bool           `json:"isUp"`
	IsServed  bool           `json:"isServed" doc:"The server answers machines there"`
	Addresses []netip.Prefix `json:"addresses" doc:"IPv4 addresses of it"`
	Subnet    string         `json:"subnet,omitempty" doc:"The subnet that has one of them"`
	BootURL   string         `json:"bootURL,omitempty" doc:"URL of the boot listener there"`
}

// BackupStatus says when the last backup was taken, and what the next one needs.
type BackupStatus struct {
	LastAt        time.Time `json:"lastAt,omitzero" doc:"When the last backup was taken whole; absent if none was"`
	LastBy        string    `json:"lastBy,omitempty" doc:"Who took it"`
	DatabaseBytes int64     `json:"databaseBytes" doc:"Size of the database; a backup is smaller"`
	FreeBytes     int64     `json:"freeBytes" doc:"Free where the copy lies while it is sent"`
	ArtefactN     int       `json:"artefactN" doc:"Files of images, which are not in a backup"`
	ArtefactBytes int64     `json:"artefactBytes"`
	SecretN       int       `json:"secretN" doc:"Secrets and passwords; the key that opens them is not in a backup"`
}

// FileImport says what the import of a file changed, or with dryRun would change.
type FileImport struct {
	IsDryRun   bool              `json:"isDryRun"`
	Changes    []transfer.Change `json:"changes" doc:"What is new or different; the rest is counted"`
	UnchangedN int               `json:"unchangedN"`
	Ignored    []string          `json:"ignored,omitempty" doc:"Columns of the file that were left out"`
}

// Package redfish owns power, boot override, virtual media, identify LED, sensors, event log, inventory and accounts of
// machines whose controller speaks DMTF Redfish (DSP0266). It never believes an order: it reads back what it has set.
// bmc.Converge finds out whether the power has changed.
//
// Start reading at Open, then connection.do (how one request survives real controllers), then quirks.go (what vendors do
// differently, as data).
//
// The words of the standard (reset types, boot sources, power states) are gofish's. The requests are our own, because
// gofish v0.23.0 does not suit. It sends If-Match with actions, which iDRAC answers with 412
// (github.com/ironcore-dev/metal-operator/issues/1015). It bounds neither bodies nor collections, and binds a client to one
// context. One property of the wrong type loses a whole document. It is used as a second client in tests, which proves
// package redfishtest.
//
// There is no serial console: Redfish names the ways to one (SSH, IPMI) but carries none.
package redfish

// Package redfish owns power, boot override, virtual media, identify LED, sensors, event log, inventory and accounts of
// machines whose controller speaks DMTF Redfish (DSP0266). It never believes an order: what was set is read back, and
// whether the power has changed is for bmc.Converge to find out.
//
// Start reading at Open, then connection.do (how one request survives real controllers), then quirks.go (what vendors do
// differently, as data).
//
// The words of the standard (reset types, boot sources, power states) are gofish's. Requests are our own, because gofish
// v0.23.0 sends If-Match with actions, which iDRAC answers with 412 (github.com/ironcore-dev/metal-operator/issues/1015),
// bounds neither bodies nor collections, binds a client to one context, and loses a whole document for one property of
// the wrong type. It is used as a second client in tests, which proves package redfishtest.
//
// There is no serial console: Redfish names the ways to one (SSH, IPMI) but carries none.
package redfish

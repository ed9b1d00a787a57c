//go:build linux

// Command agent is the first process of the guests of package krbd.
package main

import (
	"github.com/custody-storage/custody/embedded/guest/agent"
	"github.com/custody-storage/custody/test/krbd/node"
)

func main() { agent.Main(&node.Node{}) }

//go:build !full

package main

func addFull(map[string]func()) {}

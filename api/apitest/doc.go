// Package apitest checks API definitions against a real kube-apiserver. It is for
// tests only.
//
// A test package starts one Server in TestMain with the definitions it is about,
// and runs tables of Cases against it. What a schema says and what the API server
// does with it are two things: rules are dropped or refused for their cost, fields
// are pruned in silence, lists compare as sets. So nothing here interprets a
// schema; each case is a request, and what counts is the answer.
package apitest

/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package main

import (
	"maps"
	"strconv"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Names of properties, as in content.Properties.
const (
	propertyAppID           = "app_id"
	propertyContentEncoding = "content_encoding"
	propertyContentType     = "content_type"
	propertyCorrelationID   = "correlation_id"
	propertyDeliveryMode    = "delivery_mode"
	propertyExpiration      = "expiration"
	propertyMessageID       = "message_id"
	propertyPriority        = "priority"
	propertyReplyTo         = "reply_to"
	propertyType            = "type"
	propertyUserID          = "user_id"
)

// publishing is what goes to the broker for a content.
func publishing(c content) amqp.Publishing {
	return amqp.Publishing{
		Headers:       toTable(c.Headers),
		ContentType:   c.Properties[propertyContentType],
		CorrelationId: c.Properties[propertyCorrelationID],
		MessageId:     c.Properties[propertyMessageID],
		Type:          c.Properties[propertyType],
		AppId:         c.Properties[propertyAppID],
		DeliveryMode:  amqp.Persistent,
		Body:          []byte(c.Body),
	}
}

// arrivalOf reads what came from the broker. queue is the one whose rejections count.
func arrivalOf(d amqp.Delivery, queue string) arrival {
	c := content{
		RoutingKey: d.RoutingKey,
		Body:       string(d.Body),
		Headers:    plain(d.Headers).(map[string]any),
		Properties: map[string]string{
			propertyAppID:           d.AppId,
			propertyContentEncoding: d.ContentEncoding,
			propertyContentType:     d.ContentType,
			propertyCorrelationID:   d.CorrelationId,
			propertyDeliveryMode:    number(d.DeliveryMode),
			propertyExpiration:      d.Expiration,
			propertyMessageID:       d.MessageId,
			propertyPriority:        number(d.Priority),
			propertyReplyTo:         d.ReplyTo,
			propertyType:            d.Type,
			propertyUserID:          d.UserId,
		},
	}
	maps.DeleteFunc(c.Properties, func(_, value string) bool { return value == "" })
	return arrival{ID: d.MessageId, Content: c, BrokerAttempt: rejections(c.Headers, queue) + 1}
}

func number(n uint8) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(int(n))
}

// rejections adds up how often consumers of the queue have rejected a message, by x-death.
func rejections(headers map[string]any, queue string) int {
	deaths, _ := headers["x-death"].([]any)
	sum := 0
	for _, d := range deaths {
		death, _ := d.(map[string]any)
		if count, ok := death["count"].(int64); ok && death["queue"] == queue && death["reason"] == "rejected" {
			sum += int(count)
		}
	}
	return sum
}

// toTable and plain change between the client's type of table and Go's.
func toTable(headers map[string]any) amqp.Table {
	t := amqp.Table{}
	for k, v := range headers {
		if nested, ok := v.(map[string]any); ok {
			v = toTable(nested)
		}
		t[k] = v
	}
	return t
}

func plain(v any) any {
	switch v := v.(type) {
	case amqp.Table:
		m := map[string]any{}
		for k, e := range v {
			m[k] = plain(e)
		}
		return m
	case []any:
		s := make([]any, len(v))
		for i, e := range v {
			s[i] = plain(e)
		}
		return s
	}
	return v
}

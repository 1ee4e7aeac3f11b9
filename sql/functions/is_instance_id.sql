-- Whether a resource is known by the id of an EC2 instance (`i-…`).
-- args: resource_id
resource_id like 'i-%'

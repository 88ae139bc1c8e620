"""Stands in for slime 0.3.1: the rollout that calls no function with all its samples."""


def generate_rollout_fully_async(args, rollout_id, data_buffer, evaluation=False):
    groups = [group for _ in range(args.rollout_batch_size) for group in data_buffer.get_samples(1)]
    for group in groups:
        for number, sample in enumerate(group):
            sample.reward, sample.status = float(number % 2), sample.Status.COMPLETED
    return groups
